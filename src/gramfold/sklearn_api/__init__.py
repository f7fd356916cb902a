"""gramfold as scikit-learn knows it: estimators, and a transformer for tables."""

from gramfold.sklearn_api.estimators import PersonalizedClassifier, PersonalizedRegressor
from gramfold.sklearn_api.table_transformer import TableTransformer

__all__ = ["PersonalizedClassifier", "PersonalizedRegressor", "TableTransformer"]
