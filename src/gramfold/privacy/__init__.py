"""What the server does not get to see: sums under masks, and noise of a calibrated size."""

from gramfold.privacy.client import Client
from gramfold.privacy.dp import DP, composed
from gramfold.privacy.policy import Privacy
from gramfold.privacy.protocol import SecureSum
from gramfold.privacy.server import Server

__all__ = ["DP", "Client", "Privacy", "SecureSum", "Server", "composed"]
