package report

import (
	"strings"
	"testing"
)

func TestAReportNamesTheKeyOfTheAuditLog(t *testing.T) {
	const key = "pipeguard.dev/audit/win-1+01234567+AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAh"
	api := newFakeAPI(t)
	service := newFakeService(t, nil)
	service.raw = `{"version":"v1.2.3","audit":{"key":"` + key + `"}}`
	newReporter(t, api, service.address()).steps(t, 0)
	if got := api.objects["win-1"]; got == nil || got.AuditKey != key {
		t.Errorf("got %+v", got)
	}
}

func TestANewKeyOfTheAuditLogIsNews(t *testing.T) {
	one, other := describe(status{}, nil, nil), status{}
	other.Audit.Key = "another"
	if describe(other, nil, nil).isAs(one) {
		t.Error("it is taken for the same report")
	}
	other.Audit.Key = strings.Repeat("x", 1000)
	if got := describe(other, nil, nil).AuditKey; len(got) != maxKey {
		t.Errorf("%d bytes, and the schema has %d", len(got), maxKey)
	}
}
