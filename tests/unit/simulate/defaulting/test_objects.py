"""Objects come out as the API server would have stored them, as far as scheduling reads them."""

import copy

import pytest

from k8s_scheduler.simulate.defaulting.objects import defaulted


def a_pod(**spec):
    return {"kind": "Pod", "metadata": {"name": "p", "namespace": "x"}, "spec": spec}


def container_of(pod, part="containers"):
    return defaulted(pod)["spec"][part][0]


class TestContainers:
    """Requests, ports."""

    @pytest.mark.parametrize("part", ["containers", "initContainers"])
    def test_a_limit_is_asked_for_where_nothing_is(self, part):
        resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
        pod = a_pod(**{part: [{"name": "c", "resources": resources}]})
        wanted = {"cpu": "1", "memory": "1Gi"}
        assert container_of(pod, part)["resources"]["requests"] == wanted

    def test_a_request_of_zero_is_a_request(self):
        resources = {"limits": {"cpu": "2"}, "requests": {"cpu": "0"}}
        pod = a_pod(containers=[{"name": "c", "resources": resources}])
        assert container_of(pod)["resources"]["requests"] == {"cpu": "0"}

    @pytest.mark.parametrize(
        ("given", "stored"),
        [
            ("100u", "1m"),
            ("0.0005", "1m"),
            ("1000001u", "1001m"),
            ("1.5", "1.5"),
            ("250m", "250m"),
            ("3", "3"),
            (2, 2),
        ],
    )
    def test_amounts_are_rounded_up_to_thousandths(self, given, stored):
        resources = {"requests": {"cpu": given}}
        pod = a_pod(containers=[{"name": "c", "resources": resources}], overhead={"cpu": given})
        assert container_of(pod)["resources"]["requests"] == {"cpu": stored}
        assert defaulted(pod)["spec"]["overhead"] == {"cpu": stored}

    @pytest.mark.parametrize("given", [{}, {"protocol": ""}, {"protocol": None}])
    def test_a_port_is_a_tcp_port(self, given):
        pod = a_pod(containers=[{"name": "c", "ports": [{"containerPort": 80} | given]}])
        assert container_of(pod)["ports"] == [{"containerPort": 80, "protocol": "TCP"}]

    def test_on_the_host_network_every_port_is_a_host_port(self):
        ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081, "protocol": "UDP"}]
        pod = a_pod(hostNetwork=True, containers=[{"name": "c", "ports": ports}])
        assert container_of(pod)["ports"] == [
            {"containerPort": 80, "hostPort": 80, "protocol": "TCP"},
            {"containerPort": 81, "hostPort": 8081, "protocol": "UDP"},
        ]


class TestPodLevelRequests:
    """A pod that asks for something as a whole asks for all of it."""

    CONTAINERS = (
        {"name": "a", "resources": {"requests": {"cpu": "1"}}},
        {"name": "b", "resources": {"limits": {"cpu": "500m", "hugepages-2Mi": "4Mi"}}},
    )

    def requests(self, **resources):
        pod = a_pod(containers=list(self.CONTAINERS), resources=resources)
        return defaulted(pod)["spec"]["resources"].get("requests")

    def test_cpu_and_memory_are_what_the_containers_ask_for(self):
        assert self.requests(limits={"cpu": "4"})["cpu"] == "1500m"

    def test_what_no_container_asks_for_is_the_limit(self):
        assert self.requests(limits={"memory": "2Gi"})["memory"] == "2Gi"

    def test_what_the_pod_asks_for_stays(self):
        assert self.requests(requests={"cpu": "3"}, limits={"cpu": "4"})["cpu"] == "3"

    def test_huge_pages_are_the_limit_of_the_pod_or_of_its_containers(self):
        assert self.requests(limits={"cpu": "4"})["hugepages-2Mi"] == "4194304000m"
        assert self.requests(limits={"hugepages-2Mi": "8Mi"})["hugepages-2Mi"] == "8Mi"
        assert self.requests(requests={"hugepages-2Mi": "6Mi"})["hugepages-2Mi"] == "6Mi"

    def test_without_any_there_are_none(self):
        assert self.requests() is None
        assert self.requests(limits={}) is None

    def test_init_containers_count_at_their_peak(self):
        pod = a_pod(
            containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            initContainers=[
                {
                    "name": "s",
                    "restartPolicy": "Always",
                    "resources": {"requests": {"cpu": "200m"}},
                },
                {"name": "i", "resources": {"requests": {"cpu": "2"}}},
            ],
            resources={"limits": {"cpu": "4"}},
        )
        assert defaulted(pod)["spec"]["resources"]["requests"] == {"cpu": "2200m"}


class TestOtherPartsOfPods:
    """Scheduler, namespace, volumes, statuses."""

    def test_the_default_scheduler_serves_who_names_none(self):
        assert defaulted(a_pod())["spec"]["schedulerName"] == "default-scheduler"
        assert defaulted(a_pod(schedulerName="mine"))["spec"]["schedulerName"] == "mine"

    def test_a_pod_without_a_namespace_is_in_default(self):
        pod = {"kind": "Pod", "metadata": {"name": "p"}}
        assert defaulted(pod)["metadata"]["namespace"] == "default"

    def test_ceph_has_a_default_pool(self):
        given = [{"name": "v", "rbd": {"image": "i"}}, {"name": "w", "rbd": {"pool": "p"}}]
        pools = [v["rbd"]["pool"] for v in defaulted(a_pod(volumes=given))["spec"]["volumes"]]
        assert pools == ["rbd", "p"]

    def test_what_a_container_was_given_is_rounded(self):
        given = {"name": "c", "allocatedResources": {"cpu": "100u"}}
        pod = a_pod() | {"status": {"containerStatuses": [given]}}
        (status,) = defaulted(pod)["status"]["containerStatuses"]
        assert status["allocatedResources"] == {"cpu": "1m"}


class TestOtherKinds:
    """Nodes, namespaces, owners, storage."""

    def test_a_node_offers_all_it_has_unless_it_says_otherwise(self):
        capacity, less = {"cpu": "4"}, {"cpu": "3"}
        node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": capacity}}
        assert defaulted(node)["status"]["allocatable"] == capacity
        node["status"]["allocatable"] = less
        assert defaulted(node)["status"]["allocatable"] == less

    def test_a_namespace_has_its_name_as_a_label(self):
        namespace = {"kind": "Namespace", "metadata": {"name": "n", "labels": {"a": "b"}}}
        labels = {"a": "b", "kubernetes.io/metadata.name": "n"}
        assert defaulted(namespace)["metadata"]["labels"] == labels

    def test_a_replication_controller_selects_what_it_makes(self):
        spec = {"template": {"metadata": {"labels": {"app": "a"}}}}
        controller = {"kind": "ReplicationController", "metadata": {"name": "r"}, "spec": spec}
        assert defaulted(controller)["spec"]["selector"] == {"app": "a"}
        spec["selector"] = {"app": "b"}
        assert defaulted(controller)["spec"]["selector"] == {"app": "b"}

    @pytest.mark.parametrize("kind", ["PersistentVolume", "PersistentVolumeClaim"])
    def test_volumes_and_claims_are_file_systems_and_pending(self, kind):
        found = defaulted({"kind": kind, "metadata": {"name": "v"}})
        assert found["spec"]["volumeMode"] == "Filesystem"
        assert found["status"]["phase"] == "Pending"
        given = {"spec": {"volumeMode": "Block"}, "status": {"phase": "Bound"}}
        kept = defaulted({"kind": kind, "metadata": {"name": "v"}} | given)
        assert kept["spec"]["volumeMode"] == "Block"
        assert kept["status"]["phase"] == "Bound"

    def test_a_class_binds_at_once(self):
        assert defaulted({"kind": "StorageClass"})["volumeBindingMode"] == "Immediate"
        late = {"kind": "StorageClass", "volumeBindingMode": "WaitForFirstConsumer"}
        assert defaulted(late) == late

    def test_a_driver_does_not_tell_its_capacity(self):
        assert defaulted({"kind": "CSIDriver"})["spec"] == {"storageCapacity": False}

    def test_other_kinds_stay_as_they_are(self):
        other = {"kind": "ConfigMap", "metadata": {"name": "c"}}
        assert defaulted(other) is other


WRONG = ["text", 5, ["list"], None, True, {"a": "b"}, [None], [5]]


class TestAnyInput:
    """The input is never changed, and what is wrong is left for the decoder to name."""

    def test_the_input_stays_as_it_is(self):
        pod = a_pod(
            hostNetwork=True,
            resources={"limits": {"cpu": "2"}},
            containers=[
                {
                    "name": "c",
                    "resources": {"limits": {"cpu": "100u"}},
                    "ports": [{"containerPort": 1}],
                }
            ],
            volumes=[{"name": "v", "rbd": {}}],
        )
        before = copy.deepcopy(pod)
        assert defaulted(pod) != before
        assert pod == before

    @pytest.mark.parametrize("wrong", WRONG, ids=str)
    @pytest.mark.parametrize(
        "kind",
        [
            "Pod",
            "Node",
            "Namespace",
            "ReplicationController",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "CSIDriver",
        ],
    )
    def test_no_form_makes_it_raise(self, kind, wrong):
        for raw in (
            {"kind": kind, "metadata": wrong, "spec": wrong, "status": wrong},
            {"kind": kind, "spec": {"template": wrong, "resources": wrong, "capacity": wrong}},
            {"kind": kind, "status": {"capacity": wrong, "containerStatuses": wrong}},
        ):
            assert defaulted(raw)["kind"] == kind

    @pytest.mark.parametrize("wrong", WRONG, ids=str)
    def test_no_form_of_a_pod_makes_it_raise(self, wrong):
        level = {"limits": {"cpu": "1"}}
        container = {"name": "c", "resources": wrong, "ports": wrong}
        resources = {"limits": wrong, "requests": wrong}
        for spec in (
            {"containers": wrong, "initContainers": wrong, "volumes": wrong, "resources": level},
            {"containers": [container], "resources": {"limits": wrong, "requests": wrong}},
            {"containers": [{"resources": resources}], "overhead": wrong, "resources": level},
            {"containers": [{"resources": {"requests": {"cpu": wrong}}}], "resources": level},
        ):
            assert defaulted({"kind": "Pod", "spec": spec})["kind"] == "Pod"
