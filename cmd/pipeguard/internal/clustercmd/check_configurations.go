package clustercmd

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/entries"
)

// sent is what a rule sends: an operation on a resource.
type sent struct{ group, resource, operation string }

// sentOnceInForce is what entries send once they are in force.
func sentOnceInForce(names ...string) (out []sent) {
	for _, name := range names {
		rules, _ := entries.RulesOf(name)
		for _, r := range rules {
			for _, resource := range r.Resources {
				for _, operation := range r.Operations {
					if resource != ephemeral || operation != admissionregistrationv1.Create { // which this subresource does not have
						out = append(out, sent{r.APIGroups[0], resource, string(operation)})
					}
				}
			}
		}
	}
	return out
}

const ephemeral = "pods/ephemeralcontainers"

// judgesPolicies reports whether a webhook is that for policy objects.
func judgesPolicies(w *admissionregistrationv1.ValidatingWebhook) bool {
	return w.Name == entries.Policies
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
	wanted := map[string][]sent{}
	if ofPolicies {
		wanted[""] = sentOnceInForce(entries.Policies)
	} else {
		for _, prefix := range entries.Prefixes() {
			if prefix != entries.ProcessPrefix || s.release.splitsHost() {
				wanted[prefix] = sentOnceInForce(entries.WithPrefix(prefix)...)
			}
		}
	}
	covered := map[string]map[sent]bool{}
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
			prefix := entries.PrefixOf(w.Name)
			for _, text := range s.faultsOf(w, prefix) {
				c.no(conf.Name+", webhook "+w.Name, "%s", text)
			}
			if covered[prefix] == nil {
				covered[prefix] = map[sent]bool{}
			}
			maps.Copy(covered[prefix], sentBy(w.Rules, wanted[prefix]))
		}
		if isOne {
			found = true
			if conf.Annotations[entries.DigestAnnotation] == "" {
				c.Items = append(c.Items, item{conf.Name, "has no annotation " + entries.DigestAnnotation + ": whether its entries are as the chart made them is not known"})
			}
			if entries.Changed(conf, entries.Service{})[entries.PartEntries] { // faultsOf looks at the other parts
				c.no(conf.Name, "its entries are not as the chart made them; compare it with the release")
			}
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
		if slices.ContainsFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
			return entries.PrefixOf(w.Name) == entries.ProcessPrefix
		}) {
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
	if prefix == entries.ProcessPrefix || !s.release.splitsHost() {
		modes = append(modes, m.HostProcess)
	}
	if prefix == entries.ProcessPrefix {
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
	if len(w.ClientConfig.CABundle) == 0 {
		out = append(out, "the caBundle is empty: the API server can ask no replica")
	}
	if service := w.ClientConfig.Service; service == nil || service.Namespace != s.release.namespace || service.Name != s.release.service {
		out = append(out, "it is not at the service "+s.release.namespace+"/"+s.release.service)
	}
	return out
}

// sentBy is what rules send of what is wanted. A wildcard sends what it covers.
func sentBy(rules entries.Rules, wanted []sent) map[sent]bool {
	out := map[sent]bool{}
	for _, want := range wanted {
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
