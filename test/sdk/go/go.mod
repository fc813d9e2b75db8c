module flagkeep/sdk-test

go 1.21

require github.com/posthog/posthog-go v1.23.0
