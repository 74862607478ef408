package winhost

import (
	"context"
	"strings"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// ListDiskLocations implements [handler.Disk].
func (d disks) ListDiskLocations(ctx context.Context) (map[uint32]handler.DiskLocation, error) {
	found, err := d.rows(ctx, "the disks", wmi.Query{
		Namespace: wmi.Storage, Class: "MSFT_Disk", Select: []string{"Number", "Location"},
	})
	if err != nil {
		return nil, err
	}
	locations := map[uint32]handler.DiskLocation{}
	for _, row := range found {
		number, err := numberOf(row, "Number")
		if err != nil {
			return nil, unknown("the disks", err)
		}
		text, err := row.Text("Location")
		if err != nil {
			continue // the host cannot tell
		}
		if location, ok := parseLocation(text); ok {
			locations[number] = location
		}
	}
	return locations, nil
}

// parseLocation reads a text like "PCI Slot 3 : Adapter 0 : Port 0 : Target 1 : LUN 0". Less than five parts are
// no place on an adapter, and neither are parts that contradict each other or are no numbers.
func parseLocation(text string) (location handler.DiskLocation, ok bool) {
	parts := strings.Split(text, ":")
	if len(parts) < 5 {
		return handler.DiskLocation{}, false
	}
	fields := map[string]*string{"Adapter": &location.Adapter, "Bus": &location.Bus, "Target": &location.Target, "LUN": &location.LUN}
	for _, part := range parts {
		words := strings.Fields(part)
		if len(words) != 2 || fields[words[0]] == nil {
			continue
		}
		field := fields[words[0]]
		if strings.Trim(words[1], "0123456789") != "" || *field != "" {
			return handler.DiskLocation{}, false
		}
		*field, ok = words[1], true
	}
	return location, ok
}
