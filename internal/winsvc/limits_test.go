package winsvc

import "testing"

func TestLimitsAreComparedAsSets(t *testing.T) {
	base := Limits{SID: UnrestrictedSID, Privileges: []string{"SeDebugPrivilege", "SeLoadDriverPrivilege"}}
	for name, tt := range map[string]struct {
		other Limits
		want  bool
	}{
		"another order and case": {Limits{UnrestrictedSID, []string{"seloaddriverprivilege", "SeDebugPrivilege", "SeDebugPrivilege"}}, true},
		"another SID":            {Limits{NoSID, base.Privileges}, false},
		"a privilege less":       {Limits{UnrestrictedSID, base.Privileges[:1]}, false},
		"all privileges":         {Limits{SID: UnrestrictedSID}, false},
	} {
		if base.Equal(tt.other) != tt.want || tt.other.Equal(base) != tt.want {
			t.Errorf("%s: want equal %t", name, tt.want)
		}
	}
}
