package acl

import (
	"fmt"
	"testing"
)

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 1_000, 10_000} {
		var s Spec
		for i := range n {
			s.Rules = append(s.Rules, Rule{
				Name: fmt.Sprintf("rule-%d", i), Pipes: []string{"filesystem-*", "volume-v1"}, Operations: []string{"Mkdir", "Rmdir"},
				Callers: []CallerPattern{{User: "S-1-5-18", Exe: fmt.Sprintf(`C:\drivers\%d\node.exe`, i)}},
			})
		}
		policy, err := New(s)
		if err != nil {
			b.Fatal(err)
		}
		for name, exe := range map[string]string{"last-rule": fmt.Sprintf(`C:\drivers\%d\node.exe`, n-1), "denied": `C:\other\node.exe`} {
			b.Run(fmt.Sprintf("rules=%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				r := Request{"filesystem", "v1", "Rmdir", Caller{"process", "S-1-5-18", exe}}
				for b.Loop() {
					if d := policy.Decide(r); d.Allowed != (name == "last-rule") {
						b.Fatal(d)
					}
				}
			})
		}
	}
}
