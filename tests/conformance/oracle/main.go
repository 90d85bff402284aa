// oracle reads scenarios (one JSON object a line) on stdin and prints, for each pending pod, what
// kube-scheduler's own framework says: the filter verdict on every node, the score of every
// score plugin on every feasible node, and the preemption candidates where nothing is feasible.
//
// What differs between releases of the framework is in the files named after a generation; the
// build tag kube136 chooses the one up to v1.36.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	clientsetfake "k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

type scenario struct {
	ID      string            `json:"id"`
	Config  json.RawMessage   `json:"config,omitempty"`
	Objects []json.RawMessage `json:"objects"`
	Pending []string          `json:"pending"` // namespace/name of pods among the objects
}

type verdict struct {
	Plugin  string   `json:"plugin"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

type candidate struct {
	Victims       []string `json:"victims"`
	PDBViolations int64    `json:"pdbViolations"`
}

type answer struct {
	ID         string                      `json:"id"`
	Pod        string                      `json:"pod"`
	Error      string                      `json:"error,omitempty"`
	PreFilter  *verdict                    `json:"preFilter,omitempty"`
	Rejected   map[string]verdict          `json:"rejected,omitempty"`
	Feasible   []string                    `json:"feasible"`
	Scores     map[string]map[string]int64 `json:"scores,omitempty"` // node -> plugin -> weighted score; "" is the total
	Preemption map[string]candidate        `json:"preemption,omitempty"`
	Picked     []string                    `json:"preemptionPicks,omitempty"`
	Eligible   string                      `json:"preemptionNotEligible,omitempty"`
	Message    string                      `json:"message,omitempty"` // the FailedScheduling text, without what preemption adds
}

func toVerdict(s *fwk.Status) verdict {
	return verdict{Plugin: s.Plugin(), Code: s.Code().String(), Reasons: s.Reasons()}
}

func profileOf(raw json.RawMessage) (*config.KubeSchedulerProfile, error) {
	var cfg *config.KubeSchedulerConfiguration
	if len(raw) == 0 {
		c, err := latest.Default()
		if err != nil {
			return nil, err
		}
		cfg = c
	} else {
		obj, _, err := scheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
		if err != nil {
			return nil, err
		}
		cfg = obj.(*config.KubeSchedulerConfiguration)
	}
	return &cfg.Profiles[0], nil
}

func run(parent context.Context, s scenario) (out []answer, err error) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	prof, err := profileOf(s.Config)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	dec := clientscheme.Codecs.UniversalDeserializer()
	var objs []apiruntime.Object
	var nodes []*v1.Node
	var bound []*v1.Pod
	var nominated []*v1.Pod
	pods := map[string]*v1.Pod{}
	for _, r := range s.Objects {
		o, _, err := dec.Decode(r, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("object %s: %w", string(r), err)
		}
		setDefaults(o)
		if o, err = overTheWire(o); err != nil {
			return nil, fmt.Errorf("object %s: %w", string(r), err)
		}
		objs = append(objs, o)
		switch t := o.(type) {
		case *v1.Node:
			nodes = append(nodes, t)
		case *v1.Pod:
			pods[t.Namespace+"/"+t.Name] = t
			if t.Status.Phase == v1.PodSucceeded || t.Status.Phase == v1.PodFailed {
				continue // the scheduler's pod informer leaves finished pods out
			}
			if t.Spec.NodeName != "" {
				bound = append(bound, t)
			} else if t.Status.NominatedNodeName != "" {
				nominated = append(nominated, t)
			}
		}
	}
	exists := map[string]bool{}
	for _, n := range nodes {
		exists[n.Name] = true
	}
	bound = slices.DeleteFunc(bound, func(p *v1.Pod) bool { return !exists[p.Spec.NodeName] }) // the cache keeps them out of snapshots
	client := clientsetfake.NewClientset(objs...)
	inf := informers.NewSharedInformerFactory(client, 0)
	claimInf := inf.Resource().V1().ResourceClaims().Informer()
	claimCache := assumecache.NewAssumeCache(klog.FromContext(ctx), claimInf, "ResourceClaim", "", nil)
	tr, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: inf.Resource().V1().ResourceSlices(), KubeClient: client})
	if err != nil {
		return nil, err
	}
	dra := dynamicresources.NewDRAManager(ctx, claimCache, tr, inf)
	snap := internalcache.NewSnapshot(bound, nodes)
	reg := plugins.NewInTreeRegistry()
	var dp *defaultpreemption.DefaultPreemption
	orig := reg["DefaultPreemption"]
	reg["DefaultPreemption"] = func(ctx context.Context, o apiruntime.Object, h fwk.Handle) (fwk.Plugin, error) {
		p, err := orig(ctx, o, h)
		if err == nil {
			dp = p.(*defaultpreemption.DefaultPreemption)
		}
		return p, err
	}
	q := newQueue(inf)
	options := append(generationOptions(snap),
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(inf),
		frameworkruntime.WithSharedDRAManager(dra),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(inf.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithSnapshotSharedLister(snap),
		frameworkruntime.WithParallelism(1),
		frameworkruntime.WithPodNominator(q),
		frameworkruntime.WithPodActivator(q),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithMetricsRecorder(metrics.NewMetricsAsyncRecorder(1000, time.Hour, ctx.Done())),
	)
	fw, err := frameworkruntime.NewFramework(ctx, reg, prof, options...)
	if err != nil {
		return nil, fmt.Errorf("framework: %w", err)
	}
	inf.Start(ctx.Done())
	inf.WaitForCacheSync(ctx.Done())
	for _, p := range nominated {
		pi, _ := framework.NewPodInfo(p)
		q.AddNominatedPod(klog.FromContext(ctx), pi, nil)
	}
	for _, key := range s.Pending {
		pod, ok := pods[key]
		if !ok {
			return nil, fmt.Errorf("pending pod %s not among the objects", key)
		}
		out = append(out, one(ctx, s.ID, key, fw, snap, dp, pod, inf))
	}
	return out, nil
}

func one(ctx context.Context, id, key string, fw framework.Framework, snap *internalcache.Snapshot, dp *defaultpreemption.DefaultPreemption, pod *v1.Pod, inf informers.SharedInformerFactory) answer {
	a := answer{ID: id, Pod: key, Feasible: []string{}, Rejected: map[string]verdict{}}
	state := framework.NewCycleState()
	all, _ := snap.NodeInfos().List()
	m := framework.NewDefaultNodeToStatus()
	res, st, narrowed := fw.RunPreFilterPlugins(ctx, state, pod)
	diagnosis := framework.Diagnosis{NodeToStatus: m}
	var ok []fwk.NodeInfo
	if !st.IsSuccess() {
		v := toVerdict(st)
		a.PreFilter = &v
		if !st.IsRejected() {
			a.Error = st.Message()
			return a
		}
		m.SetAbsentNodesStatus(st)
		diagnosis.PreFilterMsg = st.Message()
	} else {
		cand := all
		if !res.AllNodes() {
			cand = nil
			for _, n := range all {
				if res.NodeNames.Has(n.Node().Name) {
					cand = append(cand, n)
				} else {
					a.Rejected[n.Node().Name] = verdict{Plugin: "PreFilterResult", Code: fwk.UnschedulableAndUnresolvable.String()}
				}
			}
			m.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(narrowed))))
		}
		for _, n := range cand {
			s := fw.RunFilterPluginsWithNominatedPods(ctx, state, pod, n)
			if s.IsSuccess() {
				ok = append(ok, n)
				a.Feasible = append(a.Feasible, n.Node().Name)
				continue
			}
			a.Rejected[n.Node().Name] = toVerdict(s)
			if !s.IsRejected() {
				a.Error = s.Message()
				return a
			}
			m.Set(n.Node().Name, s)
		}
	}
	sort.Strings(a.Feasible)
	if len(ok) > 0 {
		if s := fw.RunPreScorePlugins(ctx, state, pod, ok); !s.IsSuccess() {
			a.Error = s.Message()
			return a
		}
		sc, s := fw.RunScorePlugins(ctx, state, pod, ok)
		if !s.IsSuccess() {
			a.Error = s.Message()
			return a
		}
		a.Scores = map[string]map[string]int64{}
		for _, n := range sc {
			r := map[string]int64{"": n.TotalScore}
			for _, p := range n.Scores {
				r[p.Name] = p.Score
			}
			a.Scores[n.Name] = r
		}
		return a
	}
	a.Message = (&framework.FitError{Pod: pod, NumAllNodes: len(all), Diagnosis: diagnosis}).Error()
	if dp == nil {
		return a
	}
	if el, msg := dp.PodEligibleToPreemptOthers(ctx, pod, m.Get(pod.Status.NominatedNodeName)); !el {
		a.Eligible = msg
		return a
	}
	potential, err := m.NodesForStatusCode(fw.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
	if err != nil {
		a.Error = err.Error()
		return a
	}
	var pdbs []*policyv1.PodDisruptionBudget
	pdbs, _ = inf.Policy().V1().PodDisruptionBudgets().Lister().List(labels.Everything())
	cands, _, err := dp.Evaluator.DryRunPreemption(ctx, state, pod, potential, pdbs, 0, int32(len(potential)))
	if err != nil {
		a.Error = err.Error()
		return a
	}
	if len(cands) == 0 {
		return a
	}
	a.Preemption = map[string]candidate{}
	for _, c := range cands {
		k := candidate{PDBViolations: c.Victims().NumPDBViolations}
		for _, p := range c.Victims().Pods {
			k.Victims = append(k.Victims, p.Namespace+"/"+p.Name)
		}
		a.Preemption[c.Name()] = k
	}
	picks := map[string]bool{}
	for i := 0; i < 20; i++ {
		if c := dp.Evaluator.SelectCandidate(ctx, cands); c != nil {
			picks[c.Name()] = true
		}
	}
	for n := range picks {
		a.Picked = append(a.Picked, n)
	}
	sort.Strings(a.Picked)
	return a
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	metrics.Register()
	if err := registerDefaults(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<28)
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	enc := json.NewEncoder(w)
	for in.Scan() {
		var s scenario
		if err := json.Unmarshal(in.Bytes(), &s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		out, err := run(context.Background(), s)
		if err != nil {
			enc.Encode(answer{ID: s.ID, Error: err.Error()})
			continue
		}
		for _, a := range out {
			enc.Encode(a)
		}
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
