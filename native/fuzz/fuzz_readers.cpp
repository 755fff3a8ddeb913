// Feeds damaged files to the text readers, to be compiled with address and undefined-behaviour
// sanitizers (run.sh does). Inputs are random bytes, and pieces of seed files that were cut, had
// bits flipped, bytes changed or awkward tokens put in. For each input:
//
//   - the reader must return or throw its own failure, within seconds;
//   - LETOR text must give the same result (or the same failure) whole and in blocks cut anywhere,
//     with and without readable bytes behind it, dense and sparse;
//   - TREC text must give the same result in chunks of any size, and joining it with judgements
//     block by block the same as joining its columns.
//
// usage: fuzz_readers COUNT [SEED [FILE...]]     SEED makes a run repeatable.
#include <sanitizer/common_interface_defs.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>

#include "../letor.hpp"
#include "../trec.hpp"

namespace {

using namespace rankwise;
using Random = std::mt19937_64;

uint64_t current = 0;  // seed of the input at work
std::string input;

[[noreturn]] void stop(const char* why) {
    std::fprintf(stderr, "\n%s; input %llu kept in fuzz-failure.txt\n", why,
                 static_cast<unsigned long long>(current));
    std::ofstream("fuzz-failure.txt", std::ios::binary) << input;
    std::_Exit(1);
}

size_t below(Random& random, size_t n) { return n == 0 ? 0 : random() % n; }

// ---------------------------------------------------------------- inputs

const char* tokens[] = {"qid:",
                        "qid:7",
                        "nan",
                        "NULL",
                        "-NaN",
                        "inf",
                        "1e999",
                        "-1e-400",
                        "1e",
                        "0:",
                        "-1:",
                        "1:",
                        "2:",
                        ":",
                        "#",
                        "# docid = d",
                        "\r\n",
                        "\n",
                        "\n\n",
                        "\t",
                        " ",
                        ".",
                        "-",
                        "+",
                        "1e+5",
                        "2147483648:1",
                        "2147483647:1",
                        "99999999999999999999:1",
                        "9007199254740993",
                        "0.1234567890123456789",
                        "123456789012345678901234567890",
                        "1.7976931348623159e308",
                        "\xff",
                        "\xEF\xBB\xBF",
                        "Q0",
                        "4.9e-324",
                        "00000000000000000000000000000001",
                        "1_0",
                        "0x1p3"};

std::string random_bytes(Random& random, size_t most) {
    std::string text(below(random, most), '\0');
    const bool printable = random() & 1;
    for (char& c : text) {
        const auto byte = static_cast<unsigned char>(random());
        c = static_cast<char>(printable ? "0123456789.:-+e #\n\tqidna"[byte % 24] : byte);
    }
    return text;
}

void mutate(std::string& text, Random& random) {
    for (size_t n = below(random, 6); n > 0; --n) {
        const size_t at = below(random, text.size());
        switch (below(random, 8)) {
            case 0:  // truncate
                text.resize(at);
                break;
            case 1:  // flip a bit
                if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << (random() & 7)));
                break;
            case 2:  // change a byte
                if (!text.empty()) text[at] = static_cast<char>(random());
                break;
            case 3:  // drop some bytes
                text.erase(at, below(random, 12));
                break;
            case 4:  // repeat some bytes
                text.insert(at, text.substr(at, below(random, 40)));
                break;
            case 5:
                text.insert(at, random_bytes(random, 20));
                break;
            default:
                text.insert(at, tokens[below(random, std::size(tokens))]);
        }
    }
}

std::string make_input(const std::vector<std::string>& seeds, Random& random) {
    if (seeds.empty() || below(random, 10) == 0) return random_bytes(random, 300);
    const std::string& seed = seeds[below(random, seeds.size())];
    // Some whole lines, or a cut anywhere.
    size_t begin = below(random, seed.size()), size = 1 + below(random, 1500);
    if (random() & 7) {
        const size_t line = seed.rfind('\n', begin);
        begin = line == std::string::npos ? 0 : line + 1;
        const size_t stop = seed.find('\n', begin + size);
        size = stop == std::string::npos ? seed.size() : stop + 1 - begin;
    }
    std::string text = seed.substr(begin, size);
    if (random() & 3) mutate(text, random);
    return text;
}

// ---------------------------------------------------------------- LETOR

// Everything a reader found, or the failure, as one text to compare.
struct Outcome {
    std::string text;
    bool failed = false;
};

void add_bits(std::string& out, double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    out += std::to_string(value != value ? 1 : value == 0 ? 0 : bits);
    out += ' ';
}

template <class T>
Outcome letor(const LetorOptions& options, Random& random, bool blocks) {
    Outcome outcome;
    LetorReader<T> reader(options);
    try {
        for (size_t begin = 0, size = 0; begin < input.size();) {
            size =
                std::min(input.size() - begin, blocks ? size + below(random, 200) : input.size());
            const bool last = begin + size == input.size();
            // A copy of its own, so that a read behind the end is noticed.
            const size_t behind = blocks ? below(random, 2 * text_padding) : 0;
            const std::unique_ptr<char[]> copy(new char[size + behind]);
            std::memcpy(copy.get(), input.data() + begin, size);
            std::memset(copy.get() + size, '7', behind);
            const size_t used = reader.feed(copy.get(), size, size + behind, last);
            if (used > size || (last && used != size)) stop("feed used the wrong number of bytes");
            begin += used;
            if (used > 0) size = 0;
        }
    } catch (const LetorFailure& failure) {
        outcome.failed = true;
        outcome.text = std::to_string(failure.line) + ": " + failure.message;
        return outcome;
    }
    std::string& out = outcome.text;
    const auto n = static_cast<size_t>(reader.n_rows());
    out = std::to_string(n) + " rows " + std::to_string(reader.n_features()) + " features\n";
    for (size_t i = 0; i < n; ++i) {
        add_bits(out, reader.labels()[i]);
        if (options.sparse) {
            const auto starts = reader.starts().data();
            for (int64_t k = starts[i]; k < starts[i + 1]; ++k) {
                out += std::to_string(reader.columns()[k]) + ":";
                add_bits(out, reader.values()[k]);
            }
        } else {
            for (int64_t j = 0; j < reader.n_features(); ++j) {
                const T value = reader.values()[i * reader.n_features() + j];
                if (value == T(0)) continue;
                out += std::to_string(j) + ":";
                add_bits(out, value);
            }
        }
        if (reader.has_docs()) out += reader.doc(i);
        out += '\n';
    }
    for (size_t i = 0; i < reader.run_rows().size(); ++i)
        out += std::to_string(reader.run_rows()[i]) + "=" + std::string(reader.run_id(i)) + '\n';
    return outcome;
}

void fuzz_letor(Random& random, bool& failed) {
    LetorOptions options;
    options.unjudged = random() & 1;
    options.qid_optional = random() & 1;
    options.n_features = random() & 3 ? 0 : static_cast<int64_t>(1 + below(random, 300));
    options.dense_limit = 1 << 20;
    options.total_text = random() & 1 ? input.size() : 0;
    const Outcome whole = letor<double>(options, random, false);
    const Outcome blocks = letor<double>(options, random, true);
    // A width that is absurd may look so in one block and not in another: compare the rest.
    const bool refused = whole.text.find("out of proportion") != std::string::npos ||
                         blocks.text.find("out of proportion") != std::string::npos;
    if (!refused && whole.text != blocks.text) stop("the result depends on the blocks");
    options.sparse = true;
    const Outcome sparse = letor<double>(options, random, true);
    if (!refused && whole.text != sparse.text) stop("dense and sparse differ");
    options.sparse = random() & 1;
    options.absent_nan = !options.sparse;
    letor<float>(options, random, true);
    failed = whole.failed;
}

// ---------------------------------------------------------------- TREC

// What a reader returned: its result as text, or its failure.
template <class Read>
Outcome trec_outcome(Read&& read) {
    Outcome outcome;
    try {
        read(outcome.text);
    } catch (const std::invalid_argument& failure) {
        outcome.failed = true;
        outcome.text = failure.what();
        if (outcome.text.substr(0, 2) != "f:") stop("a failure without place");
    }
    return outcome;
}

void add_columns(std::string& out, const trec::Columns& c, bool with_extra) {
    const auto topics = c.topics.view(), docs = c.docs.view(), extra = c.extra.view();
    for (int64_t t = 0; t < topics.size; ++t)
        for (int64_t i = c.offsets[t]; i < c.offsets[t + 1]; ++i) {
            out.append(topics[t]).append(" ").append(docs[i]).append(" ");
            if (with_extra) out.append(extra[i]).append(" ");
            add_bits(out, c.value[i]);
        }
    out += std::to_string(c.rank_conflicts) + c.tag;
}

void add_joined(std::map<int64_t, std::string>& lists, const trec::Joined& j) {
    for (size_t q = 0; q < j.topics.size(); ++q) {
        std::string& out = lists[j.topics[q]];
        if (!out.empty()) stop("a topic was joined twice");
        out = "topic ";
        for (int64_t i = j.offsets[q]; i < j.offsets[q + 1]; ++i) {
            add_bits(out, j.label[i]);
            add_bits(out, j.score[i]);
        }
    }
}

// Joining the text block by block must give what joining its columns gives.
void fuzz_join(const trec::Judgements& judged, std::string_view run, size_t chunk, size_t block,
               const Outcome& whole) {
    std::map<int64_t, std::string> blocks, columns;
    bool together = true;
    const Outcome streamed = trec_outcome([&](std::string&) {
        trec::TextJoin join(judged, run, "f", chunk, block);
        trec::Joined part;
        while (join.next(part, 1)) add_joined(blocks, part);
        together = join.contiguous();
        add_joined(blocks, join.missing());
    });
    if (!together) return;
    if (streamed.failed != whole.failed) stop("joining text and reading it disagree");
    if (whole.failed) return;
    const trec::Columns c = trec::read_columns(trec::Kind::run, run, "f", false, 1);
    int64_t n_missing = 0, n_unjudged = 0;
    add_joined(columns, trec::join_columns(judged, c.topics.view(), c.docs.view(), c.offsets.data(),
                                           c.value.data(), true, 1, n_missing, n_unjudged));
    if (blocks != columns) stop("joining text and joining columns differ");
}

void fuzz_trec(Random& random, bool& failed) {
    const std::unique_ptr<char[]> copy(new char[input.size()]);
    std::memcpy(copy.get(), input.data(), input.size());
    const std::string_view text(copy.get(), input.size());
    const size_t chunk = 1 + below(random, 200), block = below(random, 600);
    const bool extra = random() & 1;
    failed = true;
    for (const trec::Kind kind : {trec::Kind::qrels, trec::Kind::run}) {
        const bool keep = extra && kind == trec::Kind::qrels;
        const auto read = [&](size_t chunk_bytes) {
            return trec_outcome([&](std::string& out) {
                add_columns(out, trec::read_columns(kind, text, "f", keep, 1, chunk_bytes), keep);
            });
        };
        const Outcome whole = read(0), chunks = read(chunk);
        if (whole.text != chunks.text) stop("the result depends on the chunks");
        failed = failed && whole.failed;  // text that one of the two reads counts as read
        if (kind == trec::Kind::qrels) continue;
        // Judgements made of every other document of the run itself, some of them negative.
        std::string judgements = "0 0 0 1\n";
        if (!whole.failed) {
            const trec::Columns c = trec::read_columns(kind, text, "f", false, 1);
            const auto topics = c.topics.view(), docs = c.docs.view();
            for (int64_t t = 0; t < topics.size; ++t)
                for (int64_t i = c.offsets[t]; i < c.offsets[t + 1]; i += 1 + (random() & 1)) {
                    if (topics[t] == "0") continue;
                    judgements.append(topics[t]).append(" 0 ").append(docs[i]);
                    judgements += " " + std::to_string(static_cast<int>(random() % 4) - 1) + "\n";
                }
        }
        const trec::Columns j = trec::read_columns(trec::Kind::qrels, judgements, "f", false, 1);
        const trec::Judgements judged(j.topics.view(), j.docs.view(), j.offsets.data(),
                                      j.value.data());
        fuzz_join(judged, text, chunk, block, whole);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000;
    const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    std::vector<std::string> seeds;
    for (int i = 3; i < argc; ++i) {
        std::ifstream file(argv[i], std::ios::binary);
        std::string text(std::istreambuf_iterator<char>(file), {});
        if (!text.empty()) seeds.push_back(text.substr(0, size_t{1} << 22));
    }
    __sanitizer_set_death_callback([] { stop("a sanitizer ended the run"); });
    std::signal(SIGABRT, [](int) { stop("a sanitizer ended the run"); });
    std::signal(SIGALRM, [](int) { stop("no end within 20 seconds"); });
    uint64_t failures = 0;
    for (uint64_t i = 0; i < count; ++i) {
        current = first + i;
        Random random(current);
        input = make_input(seeds, random);
        alarm(20);
        bool failed = false;
        try {
            // Mostly the reader that the text looks to be for.
            const bool colons = input.find(':') != std::string::npos;
            if (colons != (below(random, 8) == 0))
                fuzz_letor(random, failed);
            else
                fuzz_trec(random, failed);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s\n", error.what());
            stop("an exception of another kind");
        }
        failures += failed;
    }
    std::printf("%llu inputs from %zu seed files: %llu refused with a sentence, %llu read\n",
                static_cast<unsigned long long>(count), seeds.size(),
                static_cast<unsigned long long>(failures),
                static_cast<unsigned long long>(count - failures));
    return 0;
}
