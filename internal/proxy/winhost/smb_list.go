package winhost

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// Mappings implements [handler.Mapper], by the names of the shares.
func (h *Host) Mappings(ctx context.Context) ([]handler.Mapping, error) { return h.shares.list(ctx) }

var _ handler.Mapper = (*Host)(nil)

// Answers of WMI about what a Windows does not have.
// https://learn.microsoft.com/windows/win32/wmisdk/wmi-error-constants
const (
	invalidNamespace = 0x8004100E // WBEM_E_INVALID_NAMESPACE
	invalidClass     = 0x80041010 // WBEM_E_INVALID_CLASS
)

func (s shares) list(ctx context.Context) ([]handler.Mapping, error) {
	rows, err := s.rows(ctx, "the mapped shares", wmi.Query{Namespace: wmi.SMB, Class: smbMapping, Select: []string{"RemotePath", "Status"}})
	if answer, ok := errors.AsType[*wmi.Error](err); ok && (answer.Code == invalidNamespace || answer.Code == invalidClass) {
		return nil, nil // this Windows cannot map shares for the whole node
	}
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	var links []string
	if err := s.eachLink(ctx, func(to handler.RemotePath, _ string) error {
		links = append(links, strings.ToLower(to.String())+`\`)
		return nil
	}); err != nil {
		return nil, err
	}
	found := map[handler.Share]handler.Mapping{} // one share may have a row for each drive letter
	for _, row := range rows {
		text, err := row.Text("RemotePath")
		if err != nil {
			return nil, unknown("a mapped share", err)
		}
		share := handler.Share(strings.ToLower(text))
		m := handler.Mapping{Share: share, Connected: found[share].Connected || isConnected(row)}
		for _, link := range links { // programs beside this one map what lies below a share, too
			if strings.HasPrefix(link, string(share)+`\`) {
				m.Links++
			}
		}
		m.By, m.At = s.known.maker(share)
		found[share] = m
	}
	return slices.SortedFunc(maps.Values(found), func(a, b handler.Mapping) int { return cmp.Compare(a.Share, b.Share) }), nil
}
