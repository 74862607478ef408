package token

import "testing"

func BenchmarkCheckRemembered(b *testing.B) {
	c := newClock()
	v, _ := offline(b, c)
	g, md, caller := guard(b, v, Required), bearer(sign(b, rsaHeader(), claimsAt(c.Now()), clusterRSA())), driver()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := g.Check(b.Context(), md, caller); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckAbsent(b *testing.B) {
	v, _ := offline(b, newClock())
	g, caller := guard(b, v, IfPresent), driver()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := g.Check(b.Context(), nil, caller); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyByKeys(b *testing.B) {
	c := newClock()
	v, _ := offline(b, c)
	for name, text := range map[string]string{
		"RS256": sign(b, rsaHeader(), claimsAt(c.Now()), clusterRSA()),
		"ES256": sign(b, ecHeader(), claimsAt(c.Now()), clusterEC()),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				t, refusal := parse(Secret(text))
				if refusal == nil {
					refusal = v.rules.check(&t.claims, c.Now())
				}
				if refusal == nil {
					refusal = v.keys.Load().verify(t)
				}
				if refusal != nil {
					b.Fatal(refusal)
				}
			}
		})
	}
}

func BenchmarkReview(b *testing.B) {
	c, a := newClock(), startAPI(b)
	v := online(b, c, a)
	who := driverIdentity(c)
	text := Secret(sign(b, rsaHeader(), claimsAt(c.Now()), clusterRSA()))
	for b.Loop() {
		if r := v.api.review(b.Context(), text, ourAudience, who); r != nil {
			b.Fatal(r)
		}
	}
}
