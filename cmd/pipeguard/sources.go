package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/pipepath"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// sources are what a verdict rests on: policies, parameters and the guard that they describe.
type sources struct {
	modules policy.Modules // with the parameters as their data
	params  admission.Parameters
	guard   *pipepath.Guard
}

func addParams(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "params", "", "parameters file (YAML); without it, the webhook's defaults")
}

// loadSources reads policies from a directory and parameters from a file. An empty name means what is built in.
func loadSources(policyDir, paramsFile string) (sources, error) {
	params := admission.DefaultParameters()
	if paramsFile != "" {
		var err error
		if params, err = admission.LoadParameters(paramsFile); err != nil {
			return sources{}, err
		}
	}
	guard, err := params.Guard()
	if err != nil {
		return sources{}, fmt.Errorf("guarded pipes: %w", err)
	}
	modules, err := loadModules(policyDir)
	if err != nil {
		return sources{}, err
	}
	return sources{modules.WithData(params.Data()), params, guard}, nil
}
