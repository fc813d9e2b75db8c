/** Setup of an experiment in five steps. The draft is saved at every step. */

import { useRoute } from "preact-iso";
import { Page } from "../../components/page.tsx";
import { Button } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { Stepper } from "../../components/stepper.tsx";
import { request } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { to, useAddress } from "../../lib/router.ts";
import { project } from "../../lib/session.ts";
import { lazyMessages } from "../../messages/later.ts";
import { type Experiment, experimentPath, getRejection } from "../../model/experiments.ts";
import { Audience } from "./audience.tsx";
import { Hypothesis } from "./hypothesis.tsx";
import { MetricList } from "./metric-list.tsx";
import { RunningTime } from "./running-time.tsx";
import { VariantShares } from "./variant-shares.tsx";
import { WebVariants } from "./web-variants.tsx";

const w = lazyMessages.experiments;

type Step = keyof typeof w.steps;
const steps = Object.keys(w.steps) as Step[];

function StepList({ current, id }: { current: Step; id?: number }) {
  const shown = steps.map((step) => ({
    name: w.steps[step],
    href: id === undefined ? undefined : to(`experiments/${id}/setup`, { step }),
  }));
  return <Stepper label={w.setup} steps={shown} current={steps.indexOf(current)} />;
}

/** First step: nothing is stored until it is sent. */
export function NewExperiment() {
  const { go } = useAddress();
  return (
    <Page title={w.newExperiment} isForm>
      <StepList current="hypothesis" />
      <Hypothesis onDone={({ id }) => go(`experiments/${id}/setup`, { step: "variants" })} />
    </Page>
  );
}

export function ExperimentSetup() {
  const { id = "" } = useRoute().params as { id?: string };
  const { query, set, go } = useAddress();
  const experiment = useResource<Experiment>(`experiment ${project.value?.id} ${id}`, (signal) =>
    request(experimentPath(id), { signal }),
  );
  const step = steps.find((step) => step === query.step) ?? "hypothesis";
  const done = (after: Experiment) => {
    experiment.replace(after);
    const next = steps[steps.indexOf(step) + 1];
    if (next === undefined) go(`experiments/${after.id}`);
    else {
      set({ step: next }, true);
      scrollTo(0, 0);
    }
  };
  return (
    <Page
      title={experiment.data ? w.setupOf(experiment.data.name) : w.setup}
      isForm
      action={<Button href={to(`experiments/${id}`)}>{w.toExperiment}</Button>}
    >
      <StepList current={step} id={Number(id)} />
      <Content resource={experiment}>
        {(data) => {
          const props = { experiment: data, rejection: getRejection(data), onDone: done };
          // A step starts with what is stored.
          const key = `${step} ${data.id} ${data.version}`;
          switch (step) {
            case "hypothesis":
              return <Hypothesis key={key} {...props} />;
            case "variants":
              return data.type === "web" ? (
                <WebVariants key={key} {...props} />
              ) : (
                <VariantShares key={key} {...props} />
              );
            case "audience":
              return <Audience key={key} {...props} />;
            case "metrics":
              return (
                <section class="card stack">
                  <h2>{w.steps.metrics}</h2>
                  <MetricList {...props} onChanged={experiment.replace} />
                  <div class="row">
                    <Button kind="main" onClick={() => done(data)}>
                      {w.next}
                    </Button>
                  </div>
                </section>
              );
            case "time":
              return <RunningTime key={key} {...props} />;
          }
        }}
      </Content>
    </Page>
  );
}
