#!/bin/sh
# run.sh [COUNT [SEED [FILE...]]]: fuzzes the text readers under the address and undefined-behaviour
# sanitizers. Without files, the samples beside this script are the seeds, and real data sets where
# they are found ($RANKWISE_DATA or ../shared/data beside the repository).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
count=${1:-1000000}
seed=${2:-1}
[ $# -ge 2 ] && shift 2 || shift $#
build=${FUZZ_BUILD:-$(mktemp -d)}
"${CXX:-c++}" -std=c++17 -O1 -g -march=x86-64-v2 -fsanitize=address,undefined \
    -fno-sanitize-recover=all -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS \
    -o "$build/fuzz_readers" "$here/fuzz_readers.cpp"
if [ $# -eq 0 ]; then
    data=${RANKWISE_DATA:-$here/../../../shared/data}
    set -- "$here"/seeds/*
    for file in letor4/MQ2008/S1.txt letor3/OHSUMED/Feature-null/Fold1-test.txt \
        mslr-sample/test.txt lightgbm-lambdarank/rank.test fastrank/trec_news_2018.train \
        trec/robust03-top100/qrels.txt trec/trec_eval-tests/results.test; do
        [ -f "$data/$file" ] && set -- "$@" "$data/$file"
    done
fi
cd "$build"
export UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1
exec ./fuzz_readers "$count" "$seed" "$@"
