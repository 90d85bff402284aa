// Command controlplane is etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler in one binary: the name it is called by says which one runs.
// One link step instead of four, and one file to cache.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	name := filepath.Base(os.Args[0])
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	}
	command, ok := commands[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "controlplane: called as %q; call it as etcd, kube-apiserver, kube-controller-manager or kube-scheduler (by a link)\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
