package clustercmd

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The port of the Service, and of entries, that the chart makes, and its name in the Service.
const (
	chartPort   = 443 // also where an entry names none
	reviewsPort = "reviews"
)

// ports checks that webhooks of a configuration are at the port at which the release's Service leads to the webhook. The Service is read only if one of
// them is not at the chart's port.
func (s *survey) ports(ctx context.Context, c *check, conf *admissionregistrationv1.ValidatingWebhookConfiguration, webhooks []*admissionregistrationv1.ValidatingWebhook) {
	others := slices.DeleteFunc(slices.Clone(webhooks), func(w *admissionregistrationv1.ValidatingWebhook) bool {
		at := w.ClientConfig.Service
		return at == nil || at.Port == nil || *at.Port == chartPort
	})
	if len(others) == 0 {
		return
	}
	var service corev1.Service
	name := s.release.namespace + "/" + s.release.service
	if err := s.get(ctx, "/api/v1/namespaces/"+s.release.namespace+"/services/"+s.release.service, &service); err != nil && !apierrors.IsNotFound(err) {
		c.unknown("Service "+name, err)
		return
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName { // which leads on by every port
		return
	}
	for _, w := range others {
		port := *w.ClientConfig.Service.Port
		if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == reviewsPort && p.Port == port }) {
			c.no(aboutWebhook(conf, w), "it is at port %d, at which the service %s does not lead to the webhook", port, name)
		}
	}
}
