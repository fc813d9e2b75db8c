/** Where, when and to whom a survey is shown, and how often. */

import { Conditions } from "../../components/conditions.tsx";
import { Checkbox, Field, Select } from "../../components/fields.tsx";
import { EventField } from "../../components/name-fields.tsx";
import { AddButton, Button } from "../../components/primitives.tsx";
import { useResource } from "../../lib/resource.ts";
import { project } from "../../lib/session.ts";
import { lazyMessages } from "../../messages/later.ts";
import { type Filters, type FlagPage, readFlags } from "../../model/flags.ts";
import type { SurveyDraft } from "../../model/surveys.ts";

const w = lazyMessages.surveys;
const flagsMax = 500;
const eventsMax = 20;

interface AudienceProps {
  draft: SurveyDraft;
  set: (changed: Partial<SurveyDraft>) => void;
  filters: Filters | null;
  onFilters: (filters: Filters) => void;
  errorOf: (field: string) => string | undefined;
}

/** An optional number as the text of a field, and back. */
const getText = (value: unknown) => (typeof value === "number" ? String(value) : "");
const toNumber = (text: string) => (text.trim() === "" ? null : Number(text));

/** An event that shows the survey; its filters are preserved. */
interface ShowingEvent {
  name: string;
  [more: string]: unknown;
}
interface ShowingEvents {
  values?: ShowingEvent[];
  repeatedActivation?: boolean;
}

/** As posthog-js names them. */
const deviceTypes = ["Desktop", "Mobile", "Tablet"];

export function SurveyAudience({ draft, set, filters, onFilters, errorOf: getError }: AudienceProps) {
  const { conditions } = draft;
  const setCondition = (changed: Record<string, unknown>) =>
    set({ conditions: { ...conditions, ...changed } });
  const text = (name: string) => String(conditions[name] ?? "");
  const flags = useResource<FlagPage>(`flags for surveys ${project.value?.id}`, (signal) =>
    readFlags({ limit: flagsMax }, signal),
  );
  const group = filters?.groups?.[0] ?? { properties: [], rollout_percentage: 100 };
  const setDevices = (devices: string[]) =>
    setCondition({ deviceTypes: devices.length === 0 ? undefined : devices });
  const shownOn = (conditions.deviceTypes as string[] | null | undefined) ?? [];
  const linked = (flags.data?.results ?? []).find(({ id }) => id === draft.linked_flag_id);
  const variants = linked?.filters.multivariate?.variants ?? [];
  return (
    <section class="card stack">
      <h2>{w.audience}</h2>
      <Field
        label={w.url}
        value={text("url")}
        onInput={(url) => setCondition({ url })}
        error={getError("conditions.url")}
      />
      <Select
        label={w.urlMatch}
        value={text("urlMatchType") || "icontains"}
        choices={Object.entries(w.urlMatches)}
        onChange={(urlMatchType) => setCondition({ urlMatchType })}
      />
      <Field label={w.selector} value={text("selector")} onInput={(selector) => setCondition({ selector })} />
      <EventFields
        events={(conditions.events as ShowingEvents | null | undefined) ?? {}}
        onChange={(events) => setCondition({ events })}
      />
      <fieldset class="editor-fields">
        <legend class="label">{w.devices}</legend>
        <div class="row">
          {deviceTypes.map((device) => (
            <Checkbox
              key={device}
              label={w.deviceNames[device] ?? device}
              isOn={shownOn.includes(device)}
              onChange={(isOn) =>
                setDevices(isOn ? [...shownOn, device] : shownOn.filter((value) => value !== device))
              }
            />
          ))}
        </div>
        <p class="help">{w.devicesHelp}</p>
      </fieldset>
      <Field
        label={w.wait}
        type="number"
        min={0}
        value={getText(conditions.seenSurveyWaitPeriodInDays)}
        onInput={(days) => setCondition({ seenSurveyWaitPeriodInDays: toNumber(days) })}
        error={getError("conditions.seenSurveyWaitPeriodInDays")}
      />
      <Select
        label={w.linkedFlag}
        value={String(draft.linked_flag_id ?? "")}
        choices={[
          ["", w.everyPerson] as const,
          ...(flags.data?.results ?? []).map(({ id, key }) => [String(id), key] as const),
        ]}
        onChange={(id) =>
          set({
            linked_flag_id: id === "" ? null : Number(id),
            conditions: { ...conditions, linkedFlagVariant: undefined },
          })
        }
      />
      {variants.length > 0 && (
        <Select
          label={w.linkedVariant}
          value={text("linkedFlagVariant")}
          choices={[["", w.anyVariant] as const, ...variants.map(({ key }) => [key, key] as const)]}
          onChange={(key) => setCondition({ linkedFlagVariant: key || undefined })}
        />
      )}
      <h3>{w.targeting}</h3>
      <Conditions
        conditions={group.properties ?? []}
        kinds={["person", "cohort"]}
        onChange={(properties) => onFilters({ ...filters, groups: [{ ...group, properties }] })}
      />
      <Select
        label={w.schedule}
        value={draft.schedule}
        choices={Object.entries(w.schedules)}
        onChange={(schedule) =>
          set({
            schedule,
            iteration_count: schedule === "recurring" ? 2 : null,
            iteration_frequency_days: schedule === "recurring" ? 90 : null,
          })
        }
      />
      {draft.schedule === "recurring" && (
        <>
          <Field
            label={w.iterationCount}
            type="number"
            min={1}
            value={getText(draft.iteration_count)}
            onInput={(count) => set({ iteration_count: toNumber(count) })}
            error={getError("iteration_count")}
          />
          <Field
            label={w.iterationDays}
            type="number"
            min={1}
            value={getText(draft.iteration_frequency_days)}
            onInput={(days) => set({ iteration_frequency_days: toNumber(days) })}
            error={getError("iteration_frequency_days")}
          />
        </>
      )}
      <Field
        label={w.limit}
        type="number"
        min={1}
        value={getText(draft.responses_limit)}
        onInput={(limit) => set({ responses_limit: toNumber(limit) })}
        help={w.limitHelp}
        error={getError("responses_limit")}
      />
      <Checkbox
        label={w.partial}
        isOn={draft.enable_partial_responses}
        onChange={(isOn) => set({ enable_partial_responses: isOn })}
      />
    </section>
  );
}

/** Events after which the survey is shown; without one, it is shown when a page loads. */
function EventFields({
  events,
  onChange,
}: {
  events: ShowingEvents;
  onChange: (events: ShowingEvents | null) => void;
}) {
  const values = events.values ?? [];
  const put = (changed: ShowingEvent[]) =>
    onChange(changed.length === 0 ? null : { ...events, values: changed });
  return (
    <fieldset class="editor-fields">
      <legend class="label">{w.events}</legend>
      {values.map((event, position) => (
        <div key={position} class="row bottom">
          <EventField
            label={w.event(position + 1)}
            value={event.name}
            isRequired
            onInput={(name) => put(values.with(position, { ...event, name }))}
          />
          <Button
            kind="quiet"
            icon="trash"
            label={w.removeEvent(position + 1)}
            onClick={() => put(values.toSpliced(position, 1))}
          />
        </div>
      ))}
      <div class="row">
        <AddButton isDisabled={values.length >= eventsMax} onAdd={() => put([...values, { name: "" }])}>
          {w.addEvent}
        </AddButton>
      </div>
      {values.length > 0 && (
        <Checkbox
          label={w.repeated}
          isOn={events.repeatedActivation === true}
          onChange={(repeatedActivation) => onChange({ ...events, repeatedActivation })}
        />
      )}
    </fieldset>
  );
}
