package clustercmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// Prefixes of the names of webhooks for what reaches no pipe. They may be ignored while nothing is refused for that.
const (
	hostPrefix    = "host-"        // host paths; HostProcess containers as well, where there are no webhooks for these
	processPrefix = "hostprocess-" // HostProcess containers
)

// prefixOf is the prefix of a webhook's name, empty for one for pipes.
func prefixOf(name string) string {
	for _, prefix := range []string{hostPrefix, processPrefix} {
		if strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}

// ownConditions are the match conditions of the chart. Any other one could keep objects back.
var ownConditions = []string{
	"may-run-on-windows", "could-reach-a-pipe", "could-reach-no-pipe", "could-reach-its-node", "could-reach-a-host-path",
	"could-be-a-host-process", "could-be-no-host-process", "could-reach-no-host-path",
}

// sent is what a rule sends: an operation on a resource.
type sent struct{ group, resource, operation string }

// objectsSent are what the configuration for objects must send, to the webhooks for pipes and to those for the rest.
func objectsSent() (out []sent) {
	for _, r := range admission.Resources() {
		out = append(out, sent{r.Group, r.Name, "CREATE"}, sent{r.Group, r.Name, "UPDATE"})
	}
	return append(out, sent{"", "pods/ephemeralcontainers", "UPDATE"})
}

// changesSent are what the configuration for policy objects must send.
func changesSent() (out []sent) {
	for _, resource := range []string{"pipepolicies", "policymodules"} {
		out = append(out, sent{v1alpha1.GroupVersion().Group, resource, "CREATE"}, sent{v1alpha1.GroupVersion().Group, resource, "UPDATE"})
	}
	return out
}

// judgesPolicies reports whether a webhook is that for policy objects.
func judgesPolicies(w *admissionregistrationv1.ValidatingWebhook) bool {
	return w.Name == "policies"+ownSuffix
}

// objects checks the configuration that has the API server ask about objects.
func (s *survey) objects() check {
	c := newCheck("objects")
	if s.floorMode.replaces() && s.release.unread == nil {
		c.Text = "no object is sent to the webhook: the floor stands in its place (floor.mode Only)"
		for _, conf := range s.release.configurations {
			if slices.ContainsFunc(conf.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return !judgesPolicies(&w) }) {
				c.Items = append(c.Items, item{conf.Name, "asks the webhook about objects all the same, although floor.mode is Only"})
			}
		}
		return c
	}
	if s.configured(&c, false) {
		c.Text = "the API server is configured to ask about every kind that is judged"
	}
	return c
}

// changes checks the configuration for policy objects.
func (s *survey) changes() check {
	c := newCheck("changes")
	if s.configured(&c, true) {
		c.Text = "the API server is configured to ask before policy objects change"
	}
	return c
}

// configured checks the webhooks of all configurations that are of policies, or not. It returns whether there is no fault.
func (s *survey) configured(c *check, ofPolicies bool) bool {
	c.Text = "the API server may not ask about everything"
	if s.release.unread != nil {
		c.Text = "the webhook configurations could not be read"
		c.unknown("ValidatingWebhookConfiguration", s.release.unread)
		return false
	}
	wanted := map[string][]sent{"": objectsSent(), hostPrefix: objectsSent()}
	if ofPolicies {
		wanted = map[string][]sent{"": changesSent()}
	}
	if s.release.splitsHost() && !ofPolicies {
		wanted[processPrefix] = slices.DeleteFunc(objectsSent(), func(w sent) bool { return w.resource == "persistentvolumes" }) // which holds no pods
	}
	covered := map[string]map[sent]bool{"": {}, hostPrefix: {}, processPrefix: {}}
	found := false
	for i := range s.release.configurations {
		conf := &s.release.configurations[i]
		isOne := false
		for j := range conf.Webhooks {
			w := &conf.Webhooks[j]
			if judgesPolicies(w) != ofPolicies {
				continue
			}
			isOne = true
			prefix := prefixOf(w.Name)
			for _, text := range s.faultsOf(w, prefix) {
				c.no(conf.Name+", webhook "+w.Name, "%s", text)
			}
			maps.Copy(covered[prefix], sentBy(w.Rules))
		}
		if isOne {
			found = true
			if others := managersOf(conf.ManagedFields); len(others) > 1 {
				c.no(conf.Name, "was written by more than one: %s; compare it with the release", strings.Join(others, ", "))
			}
		}
	}
	if !found {
		c.Text = "there is no such webhook configuration: the API server does not ask"
		c.no("ValidatingWebhookConfiguration", "not found")
		return false
	}
	for _, prefix := range slices.Sorted(maps.Keys(wanted)) {
		for _, want := range wanted[prefix] {
			if !covered[prefix][want] {
				c.no(strings.TrimSuffix(cmp.Or(prefix, "pipe-"), "-")+" webhooks", "%s of %s is not sent", want.operation, groupResource(want))
			}
		}
	}
	return c.State == stateOK
}

func groupResource(s sent) string {
	if s.group == "" {
		return s.resource
	}
	return s.resource + "." + s.group
}

// splitsHost reports whether HostProcess containers have webhooks of their own.
func (r *release) splitsHost() bool {
	for _, c := range r.configurations {
		if slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return prefixOf(w.Name) == processPrefix }) {
			return true
		}
	}
	return false
}

// refuses reports whether the parameters can refuse what webhooks of a prefix are for. Parameters that could not be read refuse nothing here: their
// own check says so.
func (s *survey) refuses(prefix string) bool {
	m := s.report.Modes
	if m == nil {
		return false
	}
	modes := []string{m.EqualPower, m.HostPaths}
	if prefix == processPrefix || !s.release.splitsHost() {
		modes = append(modes, m.HostProcess)
	}
	if prefix == processPrefix {
		modes = modes[2:]
	}
	return slices.Contains(modes, string(admission.ActionDeny))
}

// faultsOf are why a webhook may not be asked, or not be waited for.
func (s *survey) faultsOf(w *admissionregistrationv1.ValidatingWebhook, prefix string) (out []string) {
	isEmpty := func(l *metav1.LabelSelector) bool {
		return l == nil || len(l.MatchLabels)+len(l.MatchExpressions) == 0
	}
	mayIgnore := prefix != "" && !s.refuses(prefix) || s.floorInForce && !judgesPolicies(w)
	if w.FailurePolicy != nil && *w.FailurePolicy != admissionregistrationv1.Fail && !mayIgnore {
		out = append(out, "failurePolicy "+string(*w.FailurePolicy)+": where no replica answers, objects pass")
	}
	if !isEmpty(w.NamespaceSelector) {
		out = append(out, "a namespaceSelector leaves namespaces out: "+metav1.FormatLabelSelector(w.NamespaceSelector))
	}
	if !isEmpty(w.ObjectSelector) {
		out = append(out, "an objectSelector leaves objects out: "+metav1.FormatLabelSelector(w.ObjectSelector))
	}
	for _, m := range w.MatchConditions {
		if !slices.Contains(ownConditions, m.Name) {
			out = append(out, fmt.Sprintf("match condition %q is not of the release", m.Name))
		}
	}
	if len(w.ClientConfig.CABundle) == 0 {
		out = append(out, "the caBundle is empty: the API server can ask no replica")
	}
	if service := w.ClientConfig.Service; service == nil || service.Namespace != s.release.namespace || service.Name != s.release.service {
		out = append(out, "it is not at the service "+s.release.namespace+"/"+s.release.service)
	}
	return out
}

// sentBy are what rules send. A wildcard sends what it covers of what is wanted.
func sentBy(rules []admissionregistrationv1.RuleWithOperations) map[sent]bool {
	out := map[sent]bool{}
	for _, want := range slices.Concat(objectsSent(), changesSent()) {
		for _, r := range rules {
			has := func(list []string, values ...string) bool {
				return slices.ContainsFunc(values, func(v string) bool { return slices.Contains(list, v) })
			}
			operation := slices.ContainsFunc(r.Operations, func(o admissionregistrationv1.OperationType) bool {
				return o == admissionregistrationv1.OperationAll || string(o) == want.operation
			})
			version := has(r.APIVersions, "*", "v1", v1alpha1.GroupVersion().Version)
			resources := []string{want.resource, "*/*"}
			if base, sub, isSub := strings.Cut(want.resource, "/"); isSub {
				resources = append(resources, base+"/*", "*/"+sub)
			} else {
				resources = append(resources, "*")
			}
			if operation && version && has(r.APIGroups, "*", want.group) && has(r.Resources, resources...) {
				out[want] = true
			}
		}
	}
	return out
}

// ownManager begins the names by which the webhook itself writes.
const ownManager = "pipeguard"

// managersOf are the field managers, other than the webhook's own, that wrote something of webhooks beside the caBundle, sorted.
func managersOf(fields []metav1.ManagedFieldsEntry) []string {
	names := map[string]bool{}
	for _, f := range fields {
		if f.FieldsV1 == nil || strings.HasPrefix(f.Manager, ownManager) {
			continue
		}
		var owned struct {
			Webhooks map[string]json.RawMessage `json:"f:webhooks"`
		}
		if err := json.Unmarshal(f.FieldsV1.GetRawBytes(), &owned); err != nil {
			names[f.Manager] = true // what is not understood may be anything
			continue
		}
		for key, raw := range owned.Webhooks {
			if key != "." && writesMore(raw) {
				names[f.Manager] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// writesMore reports whether owned fields of a webhook are more than its name and its caBundle.
func writesMore(raw json.RawMessage) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return true
	}
	for key, value := range fields {
		switch key {
		case ".", "f:name":
		case "f:clientConfig":
			var config map[string]json.RawMessage
			if json.Unmarshal(value, &config) != nil {
				return true
			}
			for key := range config {
				if key != "." && key != "f:caBundle" {
					return true
				}
			}
		default:
			return true
		}
	}
	return false
}
