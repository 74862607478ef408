//go:build !windows

package main

import (
	"context"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// hostMappings has nothing to list outside Windows.
func hostMappings(context.Context, string) ([]handler.Mapping, error) { return nil, nil }
