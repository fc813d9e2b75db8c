// Uses the real posthog-go package against a running server and prints what it saw as one JSON object.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/posthog/posthog-go"
)

type notes struct {
	mutex    sync.Mutex
	problems []string
}

func (n *notes) Success(posthog.APIMessage) {}
func (n *notes) Failure(_ posthog.APIMessage, err error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.problems = append(n.problems, err.Error())
}

func main() {
	url, token, personalKey := os.Args[1], os.Args[2], os.Args[3]
	noted := &notes{problems: []string{}}
	seen := map[string]any{}
	must := func(err error) {
		if err != nil {
			noted.problems = append(noted.problems, err.Error())
		}
	}

	far, err := posthog.NewWithConfig(token, posthog.Config{Endpoint: url, Callback: noted})
	must(err)
	must(far.Enqueue(posthog.Capture{
		DistinctId: "go", Event: "go capture",
		Properties: posthog.NewProperties().Set("number", 1),
		Groups:     posthog.NewGroups().Set("company", "go-co"),
	}))
	must(far.Enqueue(posthog.Identify{DistinctId: "go", Properties: posthog.NewProperties().Set("plan", "pro")}))
	must(far.Enqueue(posthog.Alias{DistinctId: "go", Alias: "go-alias"}))
	must(far.Enqueue(posthog.GroupIdentify{Type: "company", Key: "go-co", Properties: posthog.NewProperties().Set("size", 7)}))
	must(far.Enqueue(posthog.Capture{
		DistinctId: "go", Event: "go timestamp",
		Timestamp: time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC),
	}))
	enabled, err := far.IsFeatureEnabled(posthog.FeatureFlagPayload{Key: "always", DistinctId: "go-flags"})
	must(err)
	variant, err := far.GetFeatureFlag(posthog.FeatureFlagPayload{Key: "variants", DistinctId: "go-flags"})
	must(err)
	payload, err := far.GetFeatureFlagPayload(posthog.FeatureFlagPayload{Key: "always", DistinctId: "go-flags"})
	must(err)
	seen["enabled"], seen["variant"], seen["payload"] = enabled, variant, payload

	near, err := posthog.NewWithConfig(token, posthog.Config{Endpoint: url, PersonalApiKey: personalKey, Callback: noted})
	must(err)
	must(near.ReloadFeatureFlags())
	differences := []string{}
	for i := 0; i < 60; i++ {
		plan := []string{"pro", "free"}[i%2]
		asked := posthog.FeatureFlagPayloadNoKey{
			DistinctId:       fmt.Sprintf("person-%d", i),
			Groups:           posthog.NewGroups().Set("company", "acme"),
			PersonProperties: posthog.NewProperties().Set("plan", plan),
			GroupProperties:  map[string]posthog.Properties{"company": posthog.NewProperties().Set("size", 500)},
		}
		remote, err := far.GetAllFlags(asked)
		must(err)
		asked.OnlyEvaluateLocally = true
		local, err := near.GetAllFlags(asked)
		must(err)
		delete(local, "switched-off")
		// This SDK compares no text with numbers and leaves such flags to the server.
		delete(remote, "large-company")
		if !reflect.DeepEqual(local, remote) {
			differences = append(differences, fmt.Sprint(asked.DistinctId, local, remote))
		}
	}
	seen["differences"] = differences
	remoteConfig, err := near.GetRemoteConfigPayload("settings")
	must(err)
	seen["remote_config"] = remoteConfig

	must(far.Close())
	must(near.Close())
	seen["problems"] = noted.problems
	text, _ := json.Marshal(seen)
	fmt.Println(string(text))
}
