package witness

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/controller/configmaps"
)

// api is an API server that has ConfigMaps.
type api struct {
	client.Client

	mu      sync.Mutex
	all     map[string]*corev1.ConfigMap
	version int
	delay   time.Duration // of each call
	reads   int
	written []string                // names
	bytes   int                     // of what was written
	before  func(name string) error // of each write, while nothing is locked: others may be faster, or the server away
	after   func(name string) error // the same, when it is stored
}

func newAPI() *api { return &api{all: map[string]*corev1.ConfigMap{}} }

// memory is that of one replica, without pauses between rounds.
func (a *api) memory() *ConfigMaps {
	m := newConfigMaps(configmaps.Store{Namespace: "pipeguard-system", Client: a})
	m.rounds.every = 0
	return m
}

var configMaps = schema.GroupResource{Resource: "configmaps"}

func (a *api) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	time.Sleep(a.delay)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads++
	o, ok := a.all[key.Name]
	if !ok {
		return apierrors.NewNotFound(configMaps, key.Name)
	}
	o.DeepCopyInto(into.(*corev1.ConfigMap))
	return nil
}

func (a *api) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	return a.store(o, func(now *corev1.ConfigMap) error {
		if now != nil {
			return apierrors.NewAlreadyExists(configMaps, o.GetName())
		}
		return nil
	})
}

func (a *api) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	return a.store(o, func(now *corev1.ConfigMap) error {
		switch {
		case now == nil:
			return apierrors.NewNotFound(configMaps, o.GetName())
		case now.ResourceVersion != o.GetResourceVersion():
			return apierrors.NewConflict(configMaps, o.GetName(), errDown)
		}
		return nil
	})
}

func (a *api) store(o client.Object, judge func(now *corev1.ConfigMap) error) error {
	time.Sleep(a.delay)
	name := o.GetName()
	if a.before != nil {
		if err := a.before(name); err != nil {
			return err
		}
	}
	if err := a.keep(o.(*corev1.ConfigMap), judge); err != nil || a.after == nil {
		return err
	}
	return a.after(name)
}

func (a *api) keep(o *corev1.ConfigMap, judge func(now *corev1.ConfigMap) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := judge(a.all[o.Name]); err != nil {
		return err
	}
	a.version++
	kept := o.DeepCopy()
	kept.ResourceVersion = strconv.Itoa(a.version)
	a.all[o.Name] = kept
	a.written = append(a.written, o.Name)
	a.bytes += o.Size()
	return nil
}

// remove is what an operator does.
func (a *api) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, name)
}

// get returns a copy of a ConfigMap; one without data if there is none.
func (a *api) get(name string) *corev1.ConfigMap {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o, ok := a.all[name]; ok {
		return o.DeepCopy()
	}
	return &corev1.ConfigMap{}
}

// put replaces the data of a ConfigMap, or makes it: what another hand does.
func (a *api) put(name string, data map[string]string, binary map[string][]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	o := &corev1.ConfigMap{Data: data, BinaryData: binary}
	o.Name, o.ResourceVersion = name, strconv.Itoa(a.version)
	a.all[name] = o
}

// writes returns how often ConfigMaps of logs, and those that they share, were written.
func (a *api) writes() (own, shared int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range a.written {
		if strings.HasPrefix(name, namePrefix+"logs-") {
			shared++
		} else {
			own++
		}
	}
	return own, shared
}

// lines are those of the shard of a log.
func (a *api) lines(t *testing.T, origin string) content {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	o, ok := a.all[ShardName(origin)]
	if !ok {
		return nil
	}
	lines, err := decodeLines(o.BinaryData[keyLines])
	if err != nil {
		t.Fatal(err)
	}
	return lines
}
