package plant

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/crash"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
)

// Catch is the result of Hunt: the violation by which a bug was found.
type Catch struct {
	Bug    Bug
	States int64 // crash states checked until then
	By     *crash.Violation
}

// ErrMissed means that a bug was not found within its budget.
var ErrMissed = errors.New("planted bug was not found")

// Hunt explores workloads with a planted bug until it finds a broken promise or has checked
// budget states.
func Hunt(ctx context.Context, b Bug, seed uint64, budget int64) (Catch, error) {
	var counts crash.Counts
	profiles := workload.Profiles()
	for i := uint64(0); counts.States.Load() < budget; i++ {
		err := crash.Explore(ctx, crash.Options{
			Seed: seed + i, Profile: profiles[(uint64(b.First)+i)%uint64(len(profiles))], Wrap: b.Wrap, Store: b.Store, Steps: 20,
		}, &counts)
		var v *crash.Violation
		if errors.As(err, &v) {
			return Catch{Bug: b, States: counts.States.Load(), By: v}, nil
		}
		if err != nil {
			return Catch{}, err
		}
	}
	return Catch{Bug: b, States: counts.States.Load()}, fmt.Errorf("%w: %s, after %d states", ErrMissed, b.Name, counts.States.Load())
}
