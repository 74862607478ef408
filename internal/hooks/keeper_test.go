package hooks

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/entries"
)

const allEntries = 10 // of both configurations of newMemory

var first = []string{"podtemplates.pipeguard.dev", "host-podtemplates.pipeguard.dev", "hostprocess-podtemplates.pipeguard.dev"}

func TestNothingIsAskedBeforeAReplicaServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		var serves, inForce atomic.Bool
		run(t, m, func(o *Options) {
			o.InForce = func() {
				if len(m.inForce(t)) != allEntries || inForce.Swap(true) {
					t.Error("not in force, or said twice")
				}
			}
			o.Serves = func() error {
				if serves.Load() {
					return nil
				}
				return errors.New("no policy is active")
			}
		})
		after(10 * time.Minute)
		if got := m.inForce(t); len(got) > 0 || len(m.canaries()) > 0 {
			t.Fatalf("without a replica that serves, %q are in force, and there were %d canaries", got, len(m.canaries()))
		}
		if inForce.Load() {
			t.Error("said to be in force")
		}
		serves.Store(true)
		after(5 * time.Second)
		if !inForce.Load() {
			t.Error("nobody was told that they are in force")
		}
		if got := m.inForce(t); len(got) != allEntries {
			t.Errorf("in force are %q", got)
		}
		if !strings.HasSuffix(m.written()[0], strings.Join(first, " ")) || len(m.written()) != 3 {
			t.Errorf("written in this order: %q", m.written())
		}
		serves.Store(false)
		after(10 * time.Minute)
		if got := m.inForce(t); len(got) != allEntries || len(m.written()) != 3 {
			t.Errorf("for want of a replica, %q are left in force", got)
		}
	})
}

func TestAnAPIServerThatReachesNoReplicaAsksAboutPodTemplatesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.answer = unreachable()
		r := run(t, m, nil)
		after(10 * time.Minute)
		if got := m.inForce(t); !slices.Equal(got, first) {
			t.Fatalf("in force are %q", got)
		}
		if n := r.logs.FilterMessage("webhook configurations wait to come into force").Len(); n != 1 {
			t.Errorf("it was said %d times", n)
		}
		m.answers(refusal())
		after(2 * time.Second)
		if got := m.inForce(t); len(got) != allEntries || !r.events.has(reasonInForce) {
			t.Errorf("in force are %q", got)
		}
	})
}

// What admits or refuses the canary for good must not keep everything open.
func TestAnAnswerThatProvesNothingIsWaitedOut(t *testing.T) {
	for name, answer := range map[string]error{
		"admitted": nil, "refused by another": denial(`admission webhook "x" denied the request: no`), "no right": denial(`podtemplates is forbidden: User "x" cannot create resource "podtemplates"`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t)
				m.answer = answer
				run(t, m, nil)
				after(settle - 2*time.Second)
				if got := m.inForce(t); !slices.Equal(got, first) {
					t.Fatalf("in force are %q", got)
				}
				after(10 * time.Second)
				if got := m.inForce(t); len(got) != allEntries {
					t.Errorf("in force are %q", got)
				}
			})
		})
	}
}

func TestWhatMustComeBeforeComesBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		var calls atomic.Int64
		run(t, m, func(o *Options) {
			o.Before = func(context.Context) error {
				if got := m.inForce(t); calls.Load() < 3 && len(got) > 0 {
					t.Errorf("already in force: %q", got)
				}
				if calls.Add(1) < 4 {
					return errors.New("not yet")
				}
				return nil
			}
		})
		after(time.Minute)
		if got := m.inForce(t); len(got) != allEntries || calls.Load() < 4 {
			t.Errorf("after %d calls in force: %q", calls.Load(), got)
		}
	})
}

func TestRulesAreBackWhateverBecameOfThem(t *testing.T) {
	for name, change := range map[string]func(e *admissionregistrationv1.ValidatingWebhook){
		"removed":       func(e *admissionregistrationv1.ValidatingWebhook) { e.Rules = nil },
		"one resource":  func(e *admissionregistrationv1.ValidatingWebhook) { e.Rules[0].Resources = e.Rules[0].Resources[:1] },
		"one operation": func(e *admissionregistrationv1.ValidatingWebhook) { e.Rules[0].Operations = e.Rules[0].Operations[:1] },
		"another scope": func(e *admissionregistrationv1.ValidatingWebhook) {
			e.Rules[0].Scope = new(admissionregistrationv1.ClusterScope)
		},
		"another group":  func(e *admissionregistrationv1.ValidatingWebhook) { e.Rules[0].APIGroups = []string{"x"} },
		"one rule more":  func(e *admissionregistrationv1.ValidatingWebhook) { e.Rules = append(e.Rules, e.Rules[0]) },
		"other versions": func(e *admissionregistrationv1.ValidatingWebhook) { e.Rules[0].APIVersions = []string{"v2"} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, reg := newMemory(t), prometheus.NewRegistry()
				r := run(t, m, func(o *Options) {
					o.Metrics = NewMetrics(reg)
					o.Serves = func() error { // once they are in force this counts no more
						if m.begun() {
							return errors.New("gone")
						}
						return nil
					}
				})
				after(time.Minute)
				m.change(func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { change(&c.Webhooks[0]) })
				after(5 * time.Second)
				if got := m.inForce(t); len(got) != allEntries {
					t.Errorf("in force are %q", got)
				}
				if !r.events.has(reasonRestored) || r.logs.FilterMessage("rules put back that another hand had changed").Len() != 1 {
					t.Errorf("it was not said: %v", r.logs.All())
				}
				for _, want := range []string{`{configuration="pipeguard-policies"} 0`, `{configuration="pipeguard-webhook"} 1`} {
					if text := gathered(t, reg); !strings.Contains(text, "pipeguard_webhook_rules_restored_total"+want+"\n") {
						t.Errorf("the metrics are\n%s", text)
					}
				}
			})
		})
	}
}

func (m *memory) begun() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return isBegun(m.all[objectsName])
}

// Neither what serves nor the other configuration matters to one that is in force.
func TestAllRulesAreBackAlthoughNoReplicaServes(t *testing.T) {
	for _, stripped := range []string{objectsName, policiesName} {
		t.Run(stripped, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t)
				r := run(t, m, func(o *Options) {
					o.Serves = func() error {
						if m.begun() {
							return nil
						}
						return errors.New("gone")
					}
				})
				m.mu.Lock()
				m.all[objectsName].Webhooks[0].Rules, _ = entries.RulesOf(entries.Pods) // of an earlier leader
				m.mu.Unlock()
				after(time.Minute)
				m.mu.Lock()
				for i := range m.all[stripped].Webhooks {
					m.all[stripped].Webhooks[i].Rules = nil
				}
				want := len(m.all[stripped].Webhooks)
				if stripped == policiesName {
					m.all[objectsName] = &admissionregistrationv1.ValidatingWebhookConfiguration{}
				}
				m.touch(m.all[stripped])
				m.mu.Unlock()
				after(5 * time.Second)
				if got := m.inForce(t); len(got) < want || !r.events.has(reasonRestored) {
					t.Errorf("in force are %q, events %q", got, r.events.reasons)
				}
			})
		})
	}
}

// A change before the next look is one, too.
func TestRulesThatAreTakenAwayAtOnceAreBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		taken := false
		r := run(t, m, func(o *Options) {
			o.Cluster = &snatching{m, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
				if e := &c.Webhooks[0]; !taken && len(e.Rules) > 0 {
					taken, e.Rules = true, nil
				}
			}}
		})
		after(time.Minute)
		if got := m.inForce(t); !taken || len(got) != allEntries || !r.events.has(reasonRestored) {
			t.Errorf("taken %t, in force are %q, events %q", taken, got, r.events.reasons)
		}
	})
}

// snatching has another hand change a configuration as soon as rules were written.
type snatching struct {
	*memory
	snatch func(*admissionregistrationv1.ValidatingWebhookConfiguration)
}

func (s *snatching) WriteRules(ctx context.Context, c *admissionregistrationv1.ValidatingWebhookConfiguration, rules map[int]entries.Rules) error {
	err := s.memory.WriteRules(ctx, c, rules)
	s.change(s.snatch)
	return err
}

// A configuration that is installed again comes into force like the first one, and does not count as changed.
func TestAConfigurationThatIsInstalledAgainIsNobodysChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		r := run(t, m, nil)
		after(time.Minute)
		again := newMemory(t).all[objectsName]
		again.UID = "another"
		m.change(func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { *c = *again })
		after(time.Minute)
		if got := m.inForce(t); len(got) != allEntries || r.events.has(reasonRestored) {
			t.Errorf("in force are %q, events %q", got, r.events.reasons)
		}
	})
}

// The entries that a new release adds are nobody's change.
func TestAnEntryThatIsNewIsFilledInAndNoChangeOfAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		r := run(t, m, nil)
		after(time.Minute)
		m.change(func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			added := *c.Webhooks[0].DeepCopy()
			added.Name, added.Rules = "cronjobs.pipeguard.dev", nil
			c.Webhooks = append(c.Webhooks, added)
		})
		after(5 * time.Second)
		if got := m.inForce(t); len(got) != allEntries+1 || r.events.has(reasonRestored) {
			t.Errorf("in force are %q, events %q", got, r.events.reasons)
		}
	})
}

func TestAnotherHandIsReported(t *testing.T) {
	for part, change := range map[string]func(c *admissionregistrationv1.ValidatingWebhookConfiguration){
		"selectors": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[3].NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist}}}
		},
		"service": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[1].ClientConfig.Service.Name = "x"
		},
		"entries": func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[2].FailurePolicy = new(admissionregistrationv1.Ignore)
		},
	} {
		t.Run(part, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, reg := newMemory(t), prometheus.NewRegistry()
				r := run(t, m, func(o *Options) { o.Metrics = NewMetrics(reg) })
				after(time.Minute)
				if n := r.logs.FilterMessage("another hand has changed a webhook configuration").Len(); n > 0 {
					t.Fatal("it is as it was made")
				}
				m.change(change)
				after(time.Hour)
				if n := r.logs.FilterMessage("another hand has changed a webhook configuration").Len(); n != 1 || !r.events.has(reasonChanged) {
					t.Errorf("it was said %d times", n)
				}
				for _, p := range entries.Parts() {
					want := "0"
					if p == part {
						want = "1"
					}
					if text := gathered(t, reg); !strings.Contains(text, `pipeguard_webhook_configuration_changed{configuration="pipeguard-webhook",part="`+p+`"} `+want+"\n") {
						t.Errorf("the metrics are\n%s", text)
					}
				}
			})
		})
	}
}

func TestTheCanaryIsSentEveryMinuteAndAfterAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, reg := newMemory(t), prometheus.NewRegistry()
		r := run(t, m, func(o *Options) { o.Metrics = NewMetrics(reg) })
		after(time.Minute)
		before := len(m.canaries())
		after(time.Hour)
		if n := len(m.canaries()) - before; n < 55 || n > 65 || slices.ContainsFunc(m.canaries(), func(s string) bool { return s != metav1.NamespaceSystem }) {
			t.Errorf("%d canaries in an hour, to %q", n, m.canaries()[:1])
		}
		// The API server goes by the older configuration for a moment.
		m.change(func(*admissionregistrationv1.ValidatingWebhookConfiguration) {})
		after(2 * time.Second)
		m.answers(nil)
		after(retry + pause)
		if !strings.Contains(gathered(t, reg), `pipeguard_api_canary{answer="admitted"} 1`) || !r.events.has(reasonCanary) {
			t.Errorf("it is not reported:\n%s", gathered(t, reg))
		}
		after(time.Hour)
		if n := r.logs.FilterMessage("the canary was not refused by the webhook").Len(); n != 1 {
			t.Errorf("it was said %d times", n)
		}
		m.answers(refusal())
		after(retry + pause)
		if !strings.Contains(gathered(t, reg), `pipeguard_api_canary{answer="refused"} 1`) {
			t.Errorf("it is not reported:\n%s", gathered(t, reg))
		}
	})
}

func TestAMissingConfigurationIsNotInForceAndNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, reg := newMemory(t), prometheus.NewRegistry()
		delete(m.all, objectsName)
		r := run(t, m, func(o *Options) { o.Metrics = NewMetrics(reg) })
		after(time.Minute)
		if n := r.logs.FilterMessage("configuration missing").Len(); n != 1 {
			t.Errorf("it was said %d times", n)
		}
		if len(m.written()) != 1 || len(m.canaries()) > 0 || r.logs.FilterMessage("webhook configurations not kept").Len() > 0 {
			t.Errorf("writes %q, %d canaries, log %v", m.written(), len(m.canaries()), r.logs.All())
		}
		if text := gathered(t, reg); !strings.Contains(text, `pipeguard_webhook_in_force{configuration="pipeguard-webhook"} 0`) || !strings.Contains(text, `pipeguard_webhook_in_force{configuration="pipeguard-policies"} 1`) {
			t.Errorf("the metrics are\n%s", text)
		}
	})
}

// A leader of an older release meets the configuration of a newer one.
func TestAnEntryOfAnotherReleaseIsNotInForceAndIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, reg := newMemory(t), prometheus.NewRegistry()
		r := run(t, m, func(o *Options) { o.Metrics = NewMetrics(reg) })
		after(time.Minute)
		m.change(func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			later := *c.Webhooks[0].DeepCopy()
			later.Name, later.Rules = "later.pipeguard.dev", nil
			c.Webhooks = append(c.Webhooks, later)
		})
		after(time.Hour)
		if n := r.logs.FilterMessage("an entry of another release gets no rules").Len(); n != 1 || len(m.all[objectsName].Webhooks[allEntries-1].Rules) > 0 {
			t.Errorf("it was said %d times, and has the rules %v", n, m.all[objectsName].Webhooks[allEntries-1].Rules)
		}
		if text := gathered(t, reg); !strings.Contains(text, `pipeguard_webhook_in_force{configuration="pipeguard-webhook"} 0`) {
			t.Errorf("the metrics are\n%s", text)
		}
	})
}

func TestAFaultOfTheClusterIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.fault = errors.New("away")
		r := run(t, m, nil)
		after(time.Minute)
		if n := r.logs.FilterMessage("webhook configurations not kept").Len(); n < 5 || n > 60 {
			t.Errorf("it was said %d times", n)
		}
		m.mu.Lock()
		m.fault = nil
		m.mu.Unlock()
		after(10 * time.Second)
		if got := m.inForce(t); len(got) != allEntries {
			t.Errorf("in force are %q", got)
		}
	})
}

// A replica that no longer leads says nothing of what its successor knows.
func TestMetricsEndWithTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, reg := newMemory(t), prometheus.NewRegistry()
		r := run(t, m, func(o *Options) { o.Metrics = NewMetrics(reg) })
		after(time.Minute)
		if !strings.Contains(gathered(t, reg), "pipeguard_webhook_in_force{") {
			t.Fatal("there are no metrics")
		}
		r.stop()
		if text := gathered(t, reg); strings.Contains(text, "in_force") || strings.Contains(text, "canary") || strings.Contains(text, "changed{") {
			t.Errorf("the metrics are still\n%s", text)
		}
	})
}

func TestAKeeperNeedsItsOptions(t *testing.T) {
	_, err := NewKeeper(Options{})
	for _, field := range []string{"Cluster", "Policies", "Service", "Serves"} {
		if err == nil || !strings.Contains(err.Error(), field+" is missing") {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}
