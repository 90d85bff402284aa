"""Asks a running scheduler which configuration is in force: `config current`."""

import http.client
import json
import ssl
from typing import Any, Final

import yaml

from k8s_scheduler.api.config.extras import EXTRAS_API_VERSION
from k8s_scheduler.app.configuration.current_address import Address, CurrentError, authorization

_PATH: Final = "/configz"
_TIMEOUT_SECONDS: Final = 10.0
_UPSTREAM: Final = "kubescheduler.config.k8s.io"
_OURS: Final = EXTRAS_API_VERSION.partition("/")[0]
_RIGHT: Final = f"`get` the nonResourceURL {_PATH}"


def fetch(address: Address) -> dict[str, Any]:
    """Return what the scheduler says; raises CurrentError."""
    host, port = address.place()
    token_file = address.token_source(host)
    headers = {} if token_file is None else {"Authorization": authorization(token_file)}
    context = address.tls(host)
    connection = http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_SECONDS, context=context)
    try:
        connection.request("GET", _PATH, headers=headers)
        response = connection.getresponse()
        body = response.read()
    except ssl.SSLCertVerificationError as error:
        raise CurrentError(
            f"{address.shown}: its certificate is not trusted ({error.verify_message}); give its "
            "CA with --certificate-authority, or --insecure-skip-tls-verify"
        ) from error
    except OSError as error:
        raise CurrentError(f"{address.shown}: no answer: {error}") from error
    except http.client.HTTPException as error:
        # Not in its own words: they may quote an answer that holds our token.
        text = f"{address.shown}: no answer: it does not speak HTTP ({type(error).__name__})"
        raise CurrentError(text) from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        shown = token_file is not None
        hint = _hint(response.status, shown=shown, is_pods_own=address.token_file is None)
        raise CurrentError(f"{address.shown}: {response.status}: {hint}")
    return _read(body, address)


def _hint(status: int, *, shown: bool, is_pods_own: bool) -> str:
    if status == http.client.NOT_FOUND:
        return f"it has no {_PATH}: is it k8s-scheduler, and new enough?"
    if status == http.client.UNAUTHORIZED:
        return (
            "the token is not accepted: it is expired or of another cluster, or the API server "
            "could not be asked about it"
            if shown
            else "it wants a token: --token-file"
        )
    if status != http.client.FORBIDDEN:
        return http.client.responses.get(status, "an answer that is not expected here")
    if not shown:
        return f"no token was shown: --token-file, with one whose owner may {_RIGHT}"
    if is_pods_own:
        return (
            f"the pod's service account may not {_RIGHT}: apply rbac.yaml of this version, or give "
            "a token of your own with --token-file"
        )
    return (
        f"the token's owner may not read it: let it {_RIGHT}, as the ClusterRole "
        "k8s-scheduler-config-reader does"
    )


def _read(body: bytes, address: Address) -> dict[str, Any]:
    try:
        page = json.loads(body)
        if page[_UPSTREAM] is not None and page[_OURS]["hash"] is not None:
            return dict(page)
    except (ValueError, KeyError, TypeError) as error:
        raise CurrentError(f"{address.shown}: its answer is no configuration") from error
    raise CurrentError(f"{address.shown}: its answer is no configuration")


def describe(page: dict[str, Any]) -> str:
    """Return what a page says, for people: what is in force, and then the file it amounts to."""
    ours = page[_OURS]
    lines = [
        f"# hash: {ours['hash']}",
        f"# in force since: {ours['since']}",
        f"# source: {ours['source'] or 'defaults'}",
    ]
    if ours["restartNeeded"]:
        lines.append(f"# needs a restart to take effect: {', '.join(ours['restartNeeded'])}")
    refused = ours.get("refused")
    if refused:
        still = "" if ours["lastReloadSuccessful"] else ", and nothing better was offered since"
        lines.append(f"# refused at {refused['time']}{still}: {refused['hash']}")
        lines += [f"#   {error}" for error in refused["errors"]]
    documents = [page[_UPSTREAM], ours["extras"]]
    return "\n".join(lines) + "\n" + yaml.safe_dump_all(documents, sort_keys=False, width=100)
