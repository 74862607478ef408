package report

import (
	"slices"
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

func TestOtherSchemasAreNewsAndAreBounded(t *testing.T) {
	one, other := status{Schemas: []string{"a"}}, status{Schemas: []string{"a", "b"}}
	if describe(one, nil, nil).isAs(describe(other, nil, nil)) {
		t.Error("they are taken for the same report")
	}
	other.Schemas = slices.Repeat([]string{strings.Repeat("x", 1000)}, 100)
	if got := describe(other, nil, nil).Schemas; len(got) != maxSchemas || len(got[0]) != maxWord {
		t.Errorf("%d of %d bytes", len(got), len(got[0]))
	}
}
