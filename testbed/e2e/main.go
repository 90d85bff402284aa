// Command e2e is Kubernetes' end-to-end suite, cut down to its sig-scheduling
// specs: the suite's own main brings the specs of all other groups along, and
// cloud providers.
//
// It takes the flags of the framework and of Ginkgo, and --results: a file that
// gets a line of JSON for each spec as soon as it has ended, so that a suite
// that is stopped has told what it knew, and a driver can show how it goes.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/component-base/logs"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"

	_ "k8s.io/component-base/logs/testinit"
	_ "k8s.io/kubernetes/test/e2e/feature"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	_ "k8s.io/kubernetes/test/e2e/scheduling"
)

const (
	sweepPoll    = 200 * time.Millisecond
	sweepTimeout = 2 * time.Minute
)

// result is what the driver wants to know of a spec.
type result struct {
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds"`
	Message string  `json:"message"`
}

// verdict is all that Ginkgo needs of a testing.T.
type verdict struct{}

func (verdict) Fail() {}

var _ = ginkgo.BeforeSuite(func(ctx context.Context) {
	client, err := framework.LoadClientset()
	framework.ExpectNoError(err, "reading the kubeconfig")
	timeouts := framework.NewTimeoutContext()
	framework.ExpectNoError(e2enode.WaitForAllNodesSchedulable(ctx, client, timeouts.NodeSchedulable))
	nodes, err := e2enode.GetReadySchedulableNodes(ctx, client)
	framework.ExpectNoError(err, "listing the nodes")
	framework.TestContext.CloudConfig.NumNodes = len(nodes.Items)
})

// sweep has each spec begin on nodes without pods of the ones before it. The
// suite means to wait for that, but looks for namespaces by names they no longer
// have; what saves it elsewhere is a minute lost on add-ons that clusters lack.
func sweep() {
	ginkgo.BeforeEach(func(ctx context.Context) {
		client, err := framework.LoadClientset()
		framework.ExpectNoError(err, "reading the kubeconfig")
		ginkgo.By("Removing the pods of earlier specs")
		framework.ExpectNoError(wait.PollUntilContextTimeout(ctx, sweepPoll, sweepTimeout, true,
			func(ctx context.Context) (bool, error) { return swept(ctx, client) }))
	})
}

// swept says whether no namespace of this run holds a pod, and deletes those it
// finds: the namespaces are on their way out, but they take five seconds to begin.
func swept(ctx context.Context, client clientset.Interface) (bool, error) {
	ours := metav1.ListOptions{LabelSelector: "e2e-run=" + string(framework.RunID)}
	namespaces, err := client.CoreV1().Namespaces().List(ctx, ours)
	if err != nil {
		return false, err
	}
	left := 0
	for _, namespace := range namespaces.Items {
		pods, err := client.CoreV1().Pods(namespace.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		left += len(pods.Items)
		for _, pod := range pods.Items {
			err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
			if err != nil && !apierrors.IsNotFound(err) {
				return false, err
			}
		}
	}
	return left == 0, nil
}

// tell has a line written for each spec as it ends.
func tell(results *json.Encoder) {
	ginkgo.ReportAfterEach(func(report ginkgo.SpecReport) {
		framework.ExpectNoError(results.Encode(result{
			Name:    report.FullText(),
			State:   report.State.String(),
			Seconds: report.RunTime.Seconds(),
			Message: report.Failure.Message,
		}))
	})
}

func main() {
	os.Exit(run())
}

func run() int {
	path := flag.String("results", "", "file to append a line of JSON to for each spec")
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	if flag.NArg() > 0 || *path == "" {
		fmt.Fprintf(os.Stderr, "e2e: takes flags only, --results among them; got %q\n", os.Args[1:])
		return 2
	}
	framework.AfterReadingAllFlags(&framework.TestContext)
	logs.InitLogs()
	defer logs.FlushLogs()
	file, err := os.OpenFile(*path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		return 2
	}
	defer file.Close()
	// Not earlier: to read its flags the framework rehearses the specs, and after
	// a rehearsal Ginkgo has forgotten what was registered outside of containers.
	sweep()
	tell(json.NewEncoder(file))
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	if !ginkgo.RunSpecs(verdict{}, "Kubernetes e2e suite: scheduling", suite, reporter) {
		return 1
	}
	return 0
}
