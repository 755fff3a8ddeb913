"""scikit-learn's tools with query ids: a pipeline in a grid search that never cuts a query apart."""

import sklearn
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import rankwise as rw

queries = rw.make_queries(n_queries=200)
with sklearn.config_context(enable_metadata_routing=True):
    search = GridSearchCV(
        make_pipeline(rw.QueryScaler(), rw.RankSVM()),
        {"ranksvm__C": [0.001, 0.01, 0.1]},
        cv=rw.QueryKFold(5),
    )
    search.fit(queries.X, queries.y, qid=queries.qid)
print(search.best_params_, round(search.best_score_, 3))
