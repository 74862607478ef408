package entries

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// refusal is what an API server answers when the webhook refuses the canary.
func refusal() error {
	return denial(`admission webhook "podtemplates.pipeguard.dev" denied the request: Pipeguard refuses PodTemplate "pipeguard-canary".` + "\nPG003: it names no single pipe")
}

func denial(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message}}
}

func TestTheAnswerOfAnAPIServerIsUnderstood(t *testing.T) {
	resource := metav1.GroupResource{Resource: "podtemplates"}
	for name, c := range map[string]struct {
		err  error
		want Answer
	}{
		"refused by a rule":                       {refusal(), Refused},
		"refused, and wrapped":                    {fmt.Errorf("create: %w", refusal()), Refused},
		"refused without a verdict":               {denial(`admission webhook "podtemplates.pipeguard.dev" denied the request: PG999: Pipeguard refuses what it cannot judge (overload): x.`), Undecided},
		"by another webhook":                      {denial(`admission webhook "policy.example.com" denied the request: Pipeguard refuses PodTemplate`), Other},
		"by another entry":                        {denial(`admission webhook "host-podtemplates.pipeguard.dev" denied the request: Pipeguard refuses PodTemplate`), Other},
		"quoted by another":                       {denial(`admission webhook "x" denied the request: admission webhook "podtemplates.pipeguard.dev" denied the request: Pipeguard refuses `), Other},
		"by an admission policy":                  {denial(`podtemplates "pipeguard-canary" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'x' denied request: no`), Other},
		"by the floor, from which it is left out": {denial(`podtemplates "pipeguard-canary" is forbidden: ValidatingAdmissionPolicy 'floor' with binding 'floor' denied request: Pipeguard's floor refuses it. PG003`), Floor},
		"by a policy with the floor's words":      {denial(`podtemplates "pipeguard-canary" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'floor' denied request: Pipeguard's floor refuses it. PG003`), Other},
		"the floor, by another":                   {denial(`admission webhook "x" denied the request: ValidatingAdmissionPolicy 'floor' with binding 'floor' denied request: Pipeguard's floor refuses it. `), Other},
		"admitted":                                {nil, Admitted},
		"no replica":                              {apierrors.NewInternalError(errors.New(`failed calling webhook "podtemplates.pipeguard.dev": no endpoints available`)), Unreachable},
		"another entry cannot be called":          {apierrors.NewInternalError(errors.New(`failed calling webhook "host-podtemplates.pipeguard.dev": EOF`)), Unreachable},
		"any internal error":                      {apierrors.NewInternalError(errors.New("x")), None},
		"a text that no API server sent":          {errors.New(refusal().Error()), None},
		"another webhook is away":                 {apierrors.NewInternalError(errors.New(`failed calling webhook "x": no endpoints available`)), None},
		"no right":                                {denial(`podtemplates is forbidden: User "u" cannot create resource "podtemplates" in API group "" in the namespace "kube-system"`), None},
		"there is one of its name":                {apierrors.NewAlreadyExists(schema.GroupResource(resource), "pipeguard-canary"), Admitted},
		"no namespace":                            {apierrors.NewNotFound(schema.GroupResource(resource), "kube-system"), None},
		"too many requests":                       {apierrors.NewTooManyRequests("later", 1), None},
		"no API server":                           {errors.New("connection refused"), None},
		"an unknown fault":                        {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadGateway}}, None},
	} {
		if got := AnswerTo(c.err, Canary, "other", "floor"); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		want := c.want
		if want == Floor {
			want = Other
		}
		if got := AnswerTo(c.err, Canary); got != want {
			t.Errorf("%s, of a release without a floor: %s, want %s", name, got, want)
		}
	}
}
