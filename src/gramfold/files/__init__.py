"""A run as files: for Slurm arrays, Makefiles, Airflow, e-mail, whatever moves files and starts commands.

    begin      what all agree on                                 -> a task file, which goes out
    fold       a part of the data, under a task file             -> a part file: the sum of its clients' uploads
    merge      part files, in any order and any tree             -> one of all
    next       a task file and all parts                         -> the task file of the next round, or the final model
    personal   a final model and a part of the data              -> every client's head and figures

Every file is written whole or not at all, and the same inputs give the same file: any step may be repeated. Part files name the
question that they answer and the parts that are in them, so that nothing is added to what it does not belong to, or twice.
"""

from gramfold.files.parts import PartFile, merge
from gramfold.files.rounds import begin, fold, following, personal
from gramfold.files.tasks import TaskFile

__all__ = ["PartFile", "TaskFile", "begin", "fold", "following", "merge", "personal"]
