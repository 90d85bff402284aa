"""The churn keeps the cluster's size, and uses no name twice."""

from collections import Counter

from testbed.soak.churn import NAMESPACES, ODD_PODS, Churn


class Server:
    """Takes down what is created, deleted and patched."""

    def __init__(self):
        self.there = set()
        self.ever = []
        self.patched = []

    def create(self, path, body):
        name = f"{path}/{body['metadata']['name']}"
        self.ever.append(name)
        self.there.add(name)
        return body

    def delete(self, path):
        self.there = {n for n in self.there if n != path and not n.startswith(f"{path}/")}

    def patch(self, path, body, *, content_type):
        assert path.rpartition("/")[0].split("/")[5] in {n.rpartition("/")[2] for n in self.there}
        self.patched.append((path, body["spec"]["template"]["spec"]["containers"][0]["image"]))


def test_the_cluster_stays_as_large_as_it_is_while_everything_in_it_changes():
    server = Server()
    churn = Churn(server, seed=1, scheduler="s", nodes=20)
    churn.set_up()
    for _ in range(600):
        churn.step()
        assert len([n for n in server.there if n.startswith("/api/v1/nodes/")]) == 20
        namespaces = [n for n in server.there if n.count("/") == 4 and "/namespaces/" in n]
        assert len(namespaces) == NAMESPACES
        assert len([n for n in server.there if "/pods/odd-" in n]) <= ODD_PODS
    assert set(churn.steps) == {"release", "odd pod", "node", "namespace"}
    deployments = ("web", "api", "worker", "cache")
    again = [n for n, times in Counter(server.ever).items() if times > 1]
    assert not again
    assert len({image for _, image in server.patched}) == len(server.patched)
    assert all(path.rpartition("/")[2] in deployments for path, _ in server.patched)


def test_a_seed_gives_the_same_churn_again():
    logs = []
    for _ in range(2):
        server = Server()
        churn = Churn(server, seed=7, scheduler="s", nodes=5)
        churn.set_up()
        logs.append(([churn.step() for _ in range(50)], server.ever))
    assert logs[0] == logs[1]
