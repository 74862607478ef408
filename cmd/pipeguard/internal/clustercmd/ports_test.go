package clustercmd

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
)

const atService = "/api/v1/namespaces/guard/services/webhook"

func TestEntriesAtAPortThatLeadsNowhere(t *testing.T) {
	served := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "reviews", Port: 8443}, {Name: "metrics", Port: 8080}}}}
	for name, c := range map[string]struct {
		port    int32
		service any
		code    int
		want    string
	}{
		"the chart's":                {443, nil, cli.ExitYes, ""},
		"of the Service":             {8443, served, cli.ExitYes, ""},
		"of the Service's metrics":   {8080, served, cli.ExitNo, "it is at port 8080, at which the service guard/webhook does not lead to the webhook"},
		"of nothing":                 {1, served, cli.ExitNo, "it is at port 1,"},
		"without a Service":          {8443, nil, cli.ExitNo, "it is at port 8443,"},
		"of a name":                  {8443, &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName}}, cli.ExitYes, ""},
		"of a Service in the dark":   {8443, lacking("it"), cli.ExitBadInput, "Service guard/webhook: not permitted"},
		"of the chart, in the dark":  {443, lacking("it"), cli.ExitYes, ""},
		"of a Service of other sort": {8443, &corev1.Service{}, cli.ExitNo, "it is at port 8443,"},
	} {
		f := strict()
		f.webhook(t, func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.Service.Port = &c.port })
		if refused, ok := c.service.(metav1.Status); ok {
			f.answers[atService] = refused
		} else if c.service != nil {
			f.objects[atService] = c.service
		}
		if report, got := f.survey(t); got.code != c.code || !strings.Contains(report.of(t, "objects").String(), c.want) {
			t.Errorf("%s: exit code %d, %s", name, got.code, report.of(t, "objects"))
		}
	}
}
