package clustercmd

import (
	"context"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/floor"
)

// probed is a way to send the probe.
type probed struct {
	kind, path string
	webhook    string // that must refuse it
	object     map[string]any
}

// probes are the ways to send a pod that no parameters and no policy permit, in the order in which they are tried.
func probes(namespace string) []probed {
	name := map[string]any{"generateName": "pipeguard-probe-"}
	labels := map[string]any{"pipeguard.dev/probe": "true"}
	spec := map[string]any{
		"nodeSelector": map[string]any{"kubernetes.io/os": "windows"},
		"containers":   []any{map[string]any{"name": "probe", "image": "pipeguard.dev/probe"}},
		"volumes":      []any{map[string]any{"name": "probe", "hostPath": map[string]any{"path": admission.NeverAllowedPath}}},
	}
	template := map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec}
	core := "/api/v1/namespaces/" + namespace
	return []probed{
		{"Pod", core + "/pods", "pods", map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": name, "spec": spec}},
		{"PodTemplate", core + "/podtemplates", "podtemplates", map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "metadata": name, "template": template}},
		{"Deployment", "/apis/apps/v1/namespaces/" + namespace + "/deployments", "workloads", map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": name,
			"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": template},
		}},
	}
}

// probe asks whether the API server asks.
func (s *survey) probe(ctx context.Context) check {
	c := newCheck("probe")
	for _, p := range probes(s.namespace) {
		about := "the dry run of a " + p.kind + " in namespace " + s.namespace
		err := s.tryCreate(ctx, p.path, p.object)
		switch answer := answerOf(err, p.webhook); answer {
		case answerRefused:
			c.Text = about + " was refused by Pipeguard"
			return c
		case answerFloor:
			c.Text = about + " was refused by the floor, before the webhook was asked"
			s.probeBehind(ctx, &c)
			return c
		case answerAdmitted:
			c.Text = "the API server does not ask the webhook, and no floor refuses"
			c.no(p.kind, "%s was admitted, although no policy permits it", about)
			return c
		case answerFailed:
			c.Text = "the API server asks the webhook and gets no decision"
			c.no(p.kind, "%s", why(err))
			return c
		case answerOther:
			c.Items = append(c.Items, item{p.kind, why(err)})
		}
	}
	c.State, c.Text = stateUnknown, "not tried: no dry run reached Pipeguard in namespace "+s.namespace+"; name another with --namespace"
	return c
}

// probeBehind asks whether the API server asks the webhook behind a floor, by what that leaves to the webhook.
func (s *survey) probeBehind(ctx context.Context, c *check) {
	if s.floorMode.replaces() {
		return
	}
	canary := admission.APICanary(s.namespace)
	err := s.tryCreate(ctx, "/api/v1/namespaces/"+s.namespace+"/podtemplates", canary.Object)
	switch answer := answerOf(err, "podtemplates"); answer {
	case answerRefused:
		c.Text += "; what the floor leaves to the webhook was refused by that"
	case answerAdmitted:
		c.no(canary.GetName(), "the floor leaves this PodTemplate to the webhook, and the API server does not ask it: PolicyModules refuse nothing, and nothing is recorded")
	case answerFailed:
		c.no(canary.GetName(), "the floor leaves this PodTemplate to the webhook, which gave no decision: %s", why(err))
	case answerFloor, answerOther:
		c.Text += "; whether it asks the webhook too is not known"
	}
}

// answer is how the API server answered a probe.
type answer int

const (
	answerOther    answer = iota // something else refused, or it could not be asked
	answerAdmitted               // nobody refused
	answerRefused                // the webhook refused, by a rule
	answerFloor                  // an admission policy of the release refused
	answerFailed                 // the webhook was to be asked, and did not answer or decide
)

var (
	refusedBy  = regexp.MustCompile(`(?s)^admission webhook "([^"]*)" denied the request: (.*)$`)
	failedCall = regexp.MustCompile(`failed calling webhook "([^"]*)"`)
	ofFloor    = regexp.MustCompile(`^[a-z]+(?:\.[a-z]+)? "[^"]*" is forbidden: ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request: ` + regexp.QuoteMeta(floor.RefusalBegins))
	// byRule finds the codes of the rules that refused, as Pipeguard's messages begin lines with them.
	byRule = regexp.MustCompile(`(?m)^(PG\d{3}): `)
)

// answerOf sorts an answer of the API server to a probe that the webhook of a name must refuse.
func answerOf(err error, webhook string) answer {
	if err == nil {
		return answerAdmitted
	}
	if apierrors.ReasonForError(err) == "" && !apierrors.IsInternalError(err) {
		return answerOther // no answer of an API server
	}
	text := message(err)
	if m := refusedBy.FindStringSubmatch(text); m != nil && m[1] == webhook+ownSuffix {
		codes := byRule.FindAllStringSubmatch(m[2], -1)
		if slices.ContainsFunc(codes, func(c []string) bool { return c[1] != admission.CodeFailure }) {
			return answerRefused
		}
		return answerFailed
	}
	if m := failedCall.FindStringSubmatch(text); m != nil && strings.HasSuffix(m[1], ownSuffix) {
		return answerFailed
	}
	if ofFloor.MatchString(text) {
		return answerFloor
	}
	return answerOther
}
