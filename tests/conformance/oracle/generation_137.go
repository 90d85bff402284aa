//go:build !kube136

package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	coredefaults "k8s.io/kubernetes/pkg/apis/core/v1"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func newQueue(inf informers.SharedInformerFactory) internalqueue.SchedulingQueue {
	return internalqueue.NewSchedulingQueue(func(a, b fwk.QueuedEntityInfo) bool { return false }, inf)
}

func generationOptions(snap *internalcache.Snapshot) []frameworkruntime.Option {
	return []frameworkruntime.Option{frameworkruntime.WithMutableSnapshotLister(snap)}
}

// setPodLevelDefaults completes the resources of the pod as a whole, as the API server does when
// a pod is created.
func setPodLevelDefaults(pod *v1.Pod) {
	if pod.Spec.Resources == nil {
		return
	}
	var internal core.Pod
	if err := coredefaults.Convert_v1_Pod_To_core_Pod(pod.DeepCopy(), &internal, nil); err != nil {
		return
	}
	podutil.DefaultPodLevelResources(&internal)
	var resources v1.ResourceRequirements
	if err := coredefaults.Convert_core_ResourceRequirements_To_v1_ResourceRequirements(internal.Spec.Resources, &resources, nil); err != nil {
		return
	}
	pod.Spec.Resources = &resources
}
