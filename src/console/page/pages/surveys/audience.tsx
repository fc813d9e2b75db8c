/** Where, when and to whom a survey is shown, and how often. */

import { Conditions } from "../../components/conditions.tsx";
import { Area, Checkbox, Field, Select } from "../../components/fields.tsx";
import { useResource } from "../../lib/resource.ts";
import { project } from "../../lib/session.ts";
import { lazyMessages } from "../../messages/later.ts";
import { type Filters, type FlagPage, readFlags } from "../../model/flags.ts";
import type { SurveyDraft } from "../../model/surveys.ts";

const w = lazyMessages.surveys;
const flagsMax = 500;

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

const namesIn = (events: unknown): string[] =>
  ((events as { values?: { name: string }[] } | null | undefined)?.values ?? []).map(({ name }) => name);

export function SurveyAudience({ draft, set, filters, onFilters, errorOf: getError }: AudienceProps) {
  const { conditions } = draft;
  const setCondition = (changed: Record<string, unknown>) =>
    set({ conditions: { ...conditions, ...changed } });
  const text = (name: string) => String(conditions[name] ?? "");
  const flags = useResource<FlagPage>(`flags for surveys ${project.value?.id}`, (signal) =>
    readFlags({ limit: flagsMax }, signal),
  );
  const group = filters?.groups?.[0] ?? { properties: [], rollout_percentage: 100 };
  const setEvents = (lines: string) => {
    const names = lines.split("\n").filter((name) => name.trim() !== "");
    const events = conditions.events as object | null | undefined;
    setCondition({
      events: names.length === 0 ? null : { ...events, values: names.map((name) => ({ name })) },
    });
  };
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
      <Area label={w.events} value={namesIn(conditions.events).join("\n")} onInput={setEvents} />
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
        onChange={(id) => set({ linked_flag_id: id === "" ? null : Number(id) })}
      />
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
