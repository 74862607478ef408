package controller

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/controller/leader"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// unconnected is a manager of a cluster that is not there: it is asked for nothing before it starts.
func unconnected(t *testing.T) manager.Manager {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kinds := apimeta.NewDefaultRESTMapper(nil)
	kinds.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), apimeta.RESTScopeNamespace)
	kinds.Add(v1alpha1.GroupVersion().WithKind("PipePolicy"), apimeta.RESTScopeRoot)
	kinds.Add(v1alpha1.GroupVersion().WithKind("PolicyModule"), apimeta.RESTScopeRoot)
	mgr, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Scheme: scheme, Logger: logr.Discard(), Cache: cache.Options{ByObject: CacheOf("pipeguard-system")},
		MapperProvider: func(*rest.Config, *http.Client) (apimeta.RESTMapper, error) { return kinds, nil },
		Metrics:        metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

func complete(t *testing.T) Options {
	t.Helper()
	return Options{
		Engine: newCounted(t).Engine, Assemble: assembleFiles, Namespace: "pipeguard-system", PodName: "web-1", Registerer: prometheus.NewRegistry(),
		Base: func() (policy.Modules, admission.Parameters, error) {
			return base(), admission.DefaultParameters(), nil
		},
	}
}

func TestAddGivesEachManagerItsParts(t *testing.T) {
	for range 2 { // in one process
		parts, err := Add(unconnected(t), leader.New(leader.Options{}), complete(t))
		if err != nil {
			t.Fatal(err)
		}
		parts.Refresh()
		parts.Activator.Changed()
	}
}

func TestAddReportsEveryFaultOfTheOptions(t *testing.T) {
	_, err := Add(unconnected(t), leader.New(leader.Options{}), Options{PodName: "Web_1"})
	if err == nil {
		t.Fatal("nothing is missing")
	}
	for _, want := range []string{"Engine", "Base", "Assemble", "Namespace", `"Web_1"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	o := complete(t)
	o.PodName = strings.Repeat("a", 240)
	if _, err := Add(unconnected(t), leader.New(leader.Options{}), o); err == nil {
		t.Error("a Lease with a name that is too long")
	}
}
