package clustercmd

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/entries"
)

// sent is what a rule sends: an operation on a resource.
type sent struct {
	group, version, resource string
	scope                    admissionregistrationv1.ScopeType
	operation                admissionregistrationv1.OperationType
}

// sentOnceInForce is what entries send once they are in force.
func sentOnceInForce(names ...string) (out []sent) {
	for _, name := range names {
		rules, _ := entries.RulesOf(name)
		for _, r := range rules {
			for _, resource := range r.Resources {
				for _, operation := range r.Operations {
					if resource != ephemeral || operation != admissionregistrationv1.Create { // which this subresource does not have
						out = append(out, sent{r.APIGroups[0], r.APIVersions[0], resource, *r.Scope, operation})
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
func (s *survey) objects(ctx context.Context) check {
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
	if s.configured(ctx, &c, false) {
		c.Text = "the API server is configured to ask about every kind that is judged"
	}
	return c
}

// changes checks the configuration for policy objects.
func (s *survey) changes(ctx context.Context) check {
	c := newCheck("changes")
	if s.configured(ctx, &c, true) {
		c.Text = "the API server is configured to ask before policy objects change"
	}
	return c
}

// configured checks the webhooks of all configurations that are of policies, or not. It returns whether nothing is wrong or unknown.
func (s *survey) configured(ctx context.Context, c *check, ofPolicies bool) bool {
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
		var webhooks []*admissionregistrationv1.ValidatingWebhook
		for j := range conf.Webhooks {
			if w := &conf.Webhooks[j]; judgesPolicies(w) == ofPolicies {
				webhooks = append(webhooks, w)
			}
		}
		if len(webhooks) == 0 {
			continue
		}
		found = true
		for _, w := range webhooks {
			prefix := entries.PrefixOf(w.Name)
			for _, text := range s.faultsOf(w, prefix) {
				c.no(aboutWebhook(conf, w), "%s", text)
			}
			if covered[prefix] == nil {
				covered[prefix] = map[sent]bool{}
			}
			maps.Copy(covered[prefix], sentBy(w.Rules, wanted[prefix]))
		}
		s.ports(ctx, c, conf, webhooks)
		asMade(c, conf)
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
	if c.State == stateUnknown {
		c.Text = "whether the API server asks about everything is not known"
	}
	return c.State == stateOK
}

func aboutWebhook(conf *admissionregistrationv1.ValidatingWebhookConfiguration, w *admissionregistrationv1.ValidatingWebhook) string {
	return conf.Name + ", webhook " + w.Name
}

// asMade checks that the entries of a configuration are as the chart made them, by its annotation and by who wrote them.
func asMade(c *check, conf *admissionregistrationv1.ValidatingWebhookConfiguration) {
	if conf.Annotations[entries.DigestAnnotation] == "" {
		c.unknown(conf.Name, errors.New("has no annotation "+entries.DigestAnnotation+
			", so whether its entries are as the chart made them is not known: compare it with the release; helm upgrade writes the annotation"))
	}
	if entries.Changed(conf, entries.Service{})[entries.PartEntries] { // faultsOf looks at the other parts
		c.no(conf.Name, "its entries are not as the chart made them; compare it with the release")
	}
	if others := managersOf(conf.ManagedFields); len(others) > 1 {
		c.no(conf.Name, "was written by more than one: %s; compare it with the release", strings.Join(others, ", "))
	}
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

// sentBy is what rules send of what is wanted. A wildcard sends what it covers, and a rule without a scope has every scope.
func sentBy(rules entries.Rules, wanted []sent) map[sent]bool {
	out := map[sent]bool{}
	for _, want := range wanted {
		resources := []string{want.resource, "*/*"}
		if base, sub, isSub := strings.Cut(want.resource, "/"); isSub {
			resources = append(resources, base+"/*", "*/"+sub)
		} else {
			resources = append(resources, "*")
		}
		for _, r := range rules {
			scope := r.Scope == nil || *r.Scope == admissionregistrationv1.AllScopes || *r.Scope == want.scope
			if scope && containsAny(r.Operations, admissionregistrationv1.OperationAll, want.operation) && containsAny(r.APIVersions, "*", want.version) &&
				containsAny(r.APIGroups, "*", want.group) && containsAny(r.Resources, resources...) {
				out[want] = true
			}
		}
	}
	return out
}

func containsAny[T comparable](list []T, values ...T) bool {
	return slices.ContainsFunc(values, func(v T) bool { return slices.Contains(list, v) })
}
