/** One early access feature: its stage, who is enrolled, and the code. */

import { useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Field, Select } from "../../components/fields.tsx";
import { InsightView } from "../../components/insight-view.tsx";
import { Page } from "../../components/page.tsx";
import { Button, CodeBlock } from "../../components/primitives.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { clearResourceCache, reloadResources, useResource } from "../../lib/resource.ts";
import { to, useAddress } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import {
  changeFeature,
  deleteFeature,
  type Enrollment,
  enrollmentQuery,
  type Feature,
  featurePath,
  type Stage,
} from "../../model/early-access.ts";
import { FeatureForm } from "./feature-form.tsx";

const w = lazyMessages.earlyAccess;
const shownPersons = 50;

export function FeaturePage() {
  const { id = "" } = useRoute().params as { id?: string };
  const { go } = useAddress();
  const [opened, setOpened] = useState<"edit" | "remove">();
  const feature = useResource<Feature>(`feature ${project.value?.id} ${id}`, (signal) =>
    request(featurePath(id), { signal }),
  );
  const close = () => setOpened(undefined);
  const remove = async (deleted: Feature) => {
    try {
      const restore = await deleteFeature(deleted);
      // The cached list still has it.
      clearResourceCache();
      go("early-access");
      toast(
        w.deleted(deleted.name),
        () =>
          void restore().then(() => {
            toast(w.restored(deleted.name));
            reloadResources();
          }, toastError),
      );
    } catch (error) {
      toastError(error);
    }
  };
  return (
    <Page
      title={feature.data?.name ?? messages.frame.pages["early-access"]}
      action={
        feature.data && (
          <span class="row">
            <Button onClick={() => setOpened("edit")}>{w.edit}</Button>
            <Button kind="quiet" icon="trash" label={w.deleteFeature} onClick={() => setOpened("remove")} />
          </span>
        )
      }
    >
      <Content resource={feature}>
        {(data) => (
          <>
            <StageCard feature={data} onChanged={feature.replace} />
            <EnrollmentCard feature={data} />
            <section class="card stack">
              <h2>{w.code}</h2>
              <p class="help">{w.codeHelp}</p>
              <CodeBlock label={w.code} code={getCode(data.feature_flag.key)} />
            </section>
            {opened === "edit" && (
              <FeatureForm
                feature={data}
                onClose={close}
                onSaved={(after) => {
                  close();
                  feature.replace(after);
                }}
              />
            )}
            {opened === "remove" && (
              <ConfirmDialog
                title={w.deleteFeature}
                text={w.deleteText(data.name, data.feature_flag.key)}
                action={w.deleteFeature}
                onClose={close}
                onYes={() => void remove(data)}
              />
            )}
          </>
        )}
      </Content>
    </Page>
  );
}

const getCode = (flagKey: string) =>
  `posthog.getEarlyAccessFeatures((features) => console.log(features), true);\nposthog.updateEarlyAccessFeatureEnrollment(${JSON.stringify(flagKey)}, true);\n`;

function StageCard({ feature, onChanged }: { feature: Feature; onChanged: (after: Feature) => void }) {
  const { id, stage, description, feature_flag: flag } = feature;
  const change = (chosen: Stage, isUndo = false) =>
    void changeFeature(id, { stage: chosen }).then((after) => {
      onChanged(after);
      // Leaving a released stage turns the flag off for all who enrolled.
      toast(w.stageChanged(w.stages[after.stage]), isUndo ? undefined : () => change(stage, true));
    }, toastError);
  return (
    <section class="card stack">
      {description && <p>{description}</p>}
      <p>
        {w.flag}: <a href={to(`flags/${flag.id}`)}>{flag.key}</a>
      </p>
      <Select
        label={w.stage}
        value={stage}
        choices={Object.entries(w.stages) as [Stage, string][]}
        onChange={(chosen) => change(chosen)}
      />
      <p class="help">{w.effects[stage]}</p>
    </section>
  );
}

function EnrollmentCard({ feature }: { feature: Feature }) {
  const { id, feature_flag: flag } = feature;
  const enrollment = useResource<Enrollment>(`enrollment of ${project.value?.id} ${id}`, (signal) =>
    request(featurePath(id, "enrollment/"), { signal }),
  );
  const days = useResource<{ results: never[] }>(`enrollment by day ${project.value?.id} ${id}`, (signal) =>
    request(inProject("query/"), { method: "POST", body: { query: enrollmentQuery(flag.key) }, signal }),
  );
  return (
    <section class="card stack">
      <h2>{w.enrollment}</h2>
      <Enroll id={id} onDone={enrollment.reload} />
      <Content resource={enrollment} rows={2}>
        {({ enrolled, opted_out: optedOut, persons, is_truncated: isTruncated }) => (
          <>
            <p>
              {w.enrolled(enrolled)} · {w.optedOut(optedOut)}
            </p>
            {enrolled + optedOut > 0 && (
              <>
                <h3>{w.perDay}</h3>
                <Content resource={days} rows={2}>
                  {({ results }) => (
                    <InsightView kind="trends" view="bar" results={named(results)} label={w.perDay} />
                  )}
                </Content>
              </>
            )}
            {persons.length === 0 ? (
              <Empty title={w.noPersons} icon="persons" />
            ) : (
              <ul class="lines" aria-label={w.persons}>
                {persons.slice(0, shownPersons).map(({ uuid, distinct_id: distinctId }) => (
                  <li key={uuid}>
                    <a href={to(`persons/${uuid}`)}>{distinctId}</a>
                  </li>
                ))}
              </ul>
            )}
            {(isTruncated || persons.length > shownPersons) && (
              <p class="help">{w.truncated(shownPersons)}</p>
            )}
          </>
        )}
      </Content>
    </section>
  );
}

/** The two series have the same event. */
const named = (results: readonly Record<string, unknown>[]) =>
  results.map((series, position) => ({ ...series, label: position === 0 ? w.enroll : w.optOut }));

/** The event is loaded after it was captured. */
const loadMs = 1_500;

function Enroll({ id, onDone }: { id: string; onDone: () => void }) {
  const [distinctId, setDistinctId] = useState("");
  const send = async (enrolled: boolean) => {
    try {
      await request(featurePath(id, "enroll/"), {
        method: "POST",
        body: { distinct_id: distinctId.trim(), enrolled },
      });
      toast(enrolled ? w.enrolledDone(distinctId.trim()) : w.optedOutDone(distinctId.trim()));
      setDistinctId("");
      setTimeout(onDone, loadMs);
    } catch (error) {
      toastError(error);
    }
  };
  return (
    <form
      class="row bottom"
      onSubmit={(event) => {
        event.preventDefault();
        void send(true);
      }}
    >
      <Field label={w.distinctId} value={distinctId} onInput={setDistinctId} isRequired />
      <Button kind="main" type="submit">
        {w.enroll}
      </Button>
      <Button onClick={() => void send(false)} isDisabled={distinctId.trim() === ""}>
        {w.optOut}
      </Button>
    </form>
  );
}
