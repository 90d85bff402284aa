//go:build kube136

package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func newQueue(inf informers.SharedInformerFactory) internalqueue.SchedulingQueue {
	return internalqueue.NewSchedulingQueue(func(a, b fwk.QueuedPodInfo) bool { return false }, inf)
}

func generationOptions(*internalcache.Snapshot) []frameworkruntime.Option {
	return nil
}

// setPodLevelDefaults has nothing to do: up to v1.36 the scheme's defaults see to it.
func setPodLevelDefaults(*v1.Pod) {}
