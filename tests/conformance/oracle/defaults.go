package main

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	appsdefaults "k8s.io/kubernetes/pkg/apis/apps/v1"
	coredefaults "k8s.io/kubernetes/pkg/apis/core/v1"
	policydefaults "k8s.io/kubernetes/pkg/apis/policy/v1"
	storagedefaults "k8s.io/kubernetes/pkg/apis/storage/v1"
)

// registerDefaults teaches the client's scheme the API server's defaults. The packages register
// them with the API groups by themselves, but only after the client's scheme has been filled.
func registerDefaults() error {
	for _, register := range []func(*apiruntime.Scheme) error{
		coredefaults.RegisterDefaults,
		appsdefaults.RegisterDefaults,
		policydefaults.RegisterDefaults,
		storagedefaults.RegisterDefaults,
	} {
		if err := register(clientscheme.Scheme); err != nil {
			return err
		}
	}
	return nil
}

// overTheWire returns the object as a client of the API server would read it: amounts in their
// canonical form. It matters: the framework adds a pod's overhead into the very amount of
// spec.resources, if that was written as a fraction such as 1.5Gi, each time it sums them up.
func overTheWire(o apiruntime.Object) (apiruntime.Object, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	read, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	return read, err
}

// setDefaults fills in what the API server would have filled in.
func setDefaults(o apiruntime.Object) {
	clientscheme.Scheme.Default(o)
	if pod, ok := o.(*v1.Pod); ok {
		setPodLevelDefaults(pod)
	}
}
