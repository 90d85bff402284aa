"""The calls of a bind: a Binding POST and a GET of its pod, with what their answers mean.

A 403 shortly after the connection was lost is no verdict (`outage`): nothing was executed, and the
bind is sent again. A request that admission gave up in one namespace is no trouble of the server.
"""

from k8s_scheduler.kube.bounded_log import BoundedLog
from k8s_scheduler.kube.errors import CredentialsError, NotSent, OutcomeUnknown
from k8s_scheduler.kube.http.caller import Caller
from k8s_scheduler.kube.http.protocol import Response
from k8s_scheduler.kube.write.bind_machine import BindMachine
from k8s_scheduler.kube.write.binding import (
    BindRequest,
    PodSeen,
    PostAnswer,
    Posted,
    ReadAnswer,
    encode_binding,
    judge_post,
    judge_read,
    pod_path,
)
from k8s_scheduler.kube.write.outage import Outage
from k8s_scheduler.obs.counters import Count


class BindCalls:
    """Asks the server about binds, and tells `outage` of every answer and of its absence."""

    def __init__(
        self, caller: Caller, *, outage: Outage[BindMachine], unknown: Count, log: BoundedLog
    ) -> None:
        self._caller = caller
        self._outage = outage
        self._unknown = unknown
        self._log = log

    async def post(self, request: BindRequest) -> PostAnswer:
        try:
            response = await self._caller.send(
                "POST", f"{pod_path(request)}/binding", body=encode_binding(request)
            )
        except (NotSent, CredentialsError) as error:
            self._outage.had_trouble()
            return PostAnswer(Posted.NOT_SENT, str(error), heard=False)
        except OutcomeUnknown as error:
            answer = PostAnswer(Posted.UNKNOWN, str(error), heard=False)
        else:
            self._outage.answered(response)
            answer = judge_post(response)
            if answer.kind is Posted.BOUND:
                return answer
            if response.status == 403:
                if self._outage.may_be_starting:
                    return PostAnswer(Posted.NOT_SENT, answer.message, heard=False)
                self._forbidden("create", "pods/binding", request.namespace, response)
            else:
                self._tell_refusal(answer, request)
        if answer.kind is Posted.UNKNOWN:
            if answer.may_land:
                self._outage.had_trouble()
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
        """Read the pod from etcd: without a resourceVersion the API server skips its cache."""
        try:
            response = await self._caller.send("GET", pod_path(request))
        except (NotSent, CredentialsError, OutcomeUnknown) as error:
            return ReadAnswer(PodSeen.UNKNOWN, str(error), heard=False)
        self._outage.answered(response)
        if response.status == 403:
            self._forbidden("get", "pods", request.namespace, response)
        return judge_read(response, request)

    def _forbidden(self, verb: str, resource: str, namespace: str, response: Response) -> None:
        self._log.forbidden(verb, resource, namespace=namespace, error=response.error())
