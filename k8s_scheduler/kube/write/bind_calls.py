"""The calls of a bind: a Binding POST and a GET of its pod, with what their answers mean.

A server that has just started answers 403 until it has read its roles. So a 403 shortly after the
connection was lost is no verdict: nothing was executed, and the bind is sent again. What admission
has given up in one namespace is no such trouble of the server.
"""

from collections.abc import Callable
from typing import Protocol

from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import CredentialsError, NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.protocol import Response, Transport
from k8s_scheduler.kube.write.binding import (
    BindRequest,
    PostAnswer,
    Posted,
    ReadAnswer,
    Seen,
    encode_binding,
    judge_post,
    judge_read,
    pod_path,
)


class Count(Protocol):
    """A counter."""

    def inc(self) -> None:
        """Count one more."""
        ...


class BindCalls:
    """Asks the server about binds."""

    def __init__(
        self,
        transport: Transport,
        *,
        may_write: Callable[[], bool],
        on_answer: Callable[[Response], None],
        unknown: Count,
        log: BoundedLog,
        clock: Callable[[], float],
        timeout_seconds: float,
        starting_seconds: float,
    ) -> None:
        self._transport = transport
        self._may_write = may_write
        self._on_answer = on_answer
        self._unknown = unknown
        self._log = log
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._starting_seconds = starting_seconds
        # When the server last did not answer, or not as a healthy one does.
        self._trouble_at = float("-inf")

    async def post(self, request: BindRequest) -> PostAnswer:
        """Send the Binding."""
        try:
            response = await self._transport.request(
                "POST",
                f"{pod_path(request)}/binding",
                body=encode_binding(request),
                timeout_seconds=self._timeout_seconds,
                may_send=self._may_write,
            )
        except (NotSent, CredentialsError) as error:
            self._trouble_at = self._clock()
            return PostAnswer(Posted.NOT_SENT, str(error), heard=False)
        except OutcomeUnknown as error:
            answer = PostAnswer(Posted.UNKNOWN, str(error), heard=False)
        else:
            self._on_answer(response)
            answer = judge_post(response)
            if answer.kind is Posted.BOUND:
                return answer
            if response.status == 403:
                if self._server_may_be_starting():
                    return PostAnswer(Posted.NOT_SENT, answer.message, heard=False)
                self._forbidden("create", "pods/binding", request.namespace, response)
            else:
                self._tell_refusal(answer, request)
        if answer.kind is Posted.UNKNOWN:
            if answer.may_land:
                self._trouble_at = self._clock()
            self._unknown.inc()
            self._log.warning(
                "unknown",
                "bind of pod %s/%s to node %s has an unknown outcome, reading the pod: %s",
                request.namespace,
                request.name,
                request.node,
                answer.message,
            )
        return answer

    def _tell_refusal(self, answer: PostAnswer, request: BindRequest) -> None:
        pod = (request.namespace, request.name)
        if answer.kind is Posted.THROTTLED:
            text = "API server asks to slow down, bind of pod %s/%s waits: %s"
            self._log.warning("throttled", text, *pod, answer.message)
        elif answer.kind is Posted.REFUSED:
            text = "bind of pod %s/%s to node %s was refused: %s"
            self._log.warning("refused", text, *pod, request.node, answer.message)

    async def read(self, request: BindRequest) -> ReadAnswer:
        """Read the pod, from etcd: no version is named, so the API server's cache will not do."""
        try:
            response = await self._transport.request(
                "GET",
                pod_path(request),
                timeout_seconds=self._timeout_seconds,
            )
        except (NotSent, CredentialsError, OutcomeUnknown) as error:
            return ReadAnswer(Seen.UNKNOWN, str(error), heard=False)
        self._on_answer(response)
        if response.status == 403:
            self._forbidden("get", "pods", request.namespace, response)
        return judge_read(response, request)

    def _server_may_be_starting(self) -> bool:
        return self._clock() - self._trouble_at < self._starting_seconds

    def _forbidden(self, verb: str, resource: str, namespace: str, response: Response) -> None:
        self._log.forbidden(verb, resource, namespace=namespace, error=response.error())
