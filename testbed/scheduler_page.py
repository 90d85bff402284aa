"""Pages that kube-scheduler serves on a bed."""

import http.client
import ssl
from urllib.parse import urlsplit

from testbed.bed import Bed
from testbed.kubeconfig import read_token_kubeconfig
from testbed.options import SCHEDULER


def ask(bed: Bed, path: str) -> str:
    """Ask kube-scheduler; it asks the API server who we are."""
    address = urlsplit(bed.url(SCHEDULER))
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # it signs its own certificate
    connection = http.client.HTTPSConnection(
        address.hostname or "", address.port, timeout=10, context=context
    )
    try:
        token = read_token_kubeconfig(bed.kubeconfig).token
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().read().decode()
    finally:
        connection.close()
