/** Fields for names of events and properties: recent ones first, then events with their volume, or properties. */

import { useState } from "preact/hooks";
import { request } from "../lib/api.ts";
import { compact } from "../lib/format.ts";
import { useBackgroundResource } from "../lib/resource.ts";
import { inProject, project } from "../lib/session.ts";
import { readPreference, savePreference } from "../lib/storage.ts";
import { messages } from "../messages/index.ts";
import { type PropertyOwner, useEventNames, usePropertyNames } from "../model/definitions.ts";
import { Combobox, type ComboOption } from "./combobox.tsx";

const w = messages.frame;
const recentMax = 5;
const volumeDays = 30;
const volumeStatement = `SELECT event, count(*) AS n FROM events WHERE timestamp >= now() - INTERVAL ${volumeDays} DAY GROUP BY event ORDER BY n DESC LIMIT 500`;

type NameKind = "events" | "properties";

const getPreference = (kind: NameKind) => `recent ${kind} ${project.value?.id}`;

function readRecent(kind: NameKind): string[] {
  try {
    const stored = JSON.parse(readPreference(getPreference(kind)) ?? "[]") as unknown;
    return Array.isArray(stored) ? stored.map(String).slice(0, recentMax) : [];
  } catch {
    return [];
  }
}

/** Remembers a chosen name in this browser. */
function recordChosenName(kind: NameKind, name: string): void {
  const names = [name, ...readRecent(kind).filter((other) => other !== name)].slice(0, recentMax);
  savePreference(getPreference(kind), JSON.stringify(names));
}

const recentOptions = (kind: NameKind, known: readonly string[]): ComboOption[] =>
  readRecent(kind)
    .filter((name) => known.includes(name))
    .map((value) => ({ value, group: w.nameGroups.recent }));

/** Events by volume. The volumes are counted once the list was opened. */
function useEventOptions(): { options: ComboOption[]; load: () => void } {
  const names = useEventNames();
  const [isWanted, setWanted] = useState(false);
  const { data } = useBackgroundResource<{ rows: { event: string; n: number }[] }>(
    isWanted ? `event volumes ${project.value?.id}` : null,
    (signal) => request(inProject("query/"), { method: "POST", body: { query: volumeStatement }, signal }),
  );
  const volumes = new Map(data?.rows.map(({ event, n }) => [event, n]));
  const all = names.toSorted((a, b) => (volumes.get(b) ?? 0) - (volumes.get(a) ?? 0));
  const options = [
    ...recentOptions("events", names),
    ...all.map((value) => {
      const count = volumes.get(value);
      return { value, group: w.nameGroups.events, hint: count === undefined ? undefined : compact(count) };
    }),
  ];
  return { options, load: () => setWanted(true) };
}

/** Properties of an owner; those of sessions apart. */
function usePropertyOptions(owner: PropertyOwner, groupTypeIndex: number | undefined): ComboOption[] {
  const names = usePropertyNames(owner, groupTypeIndex);
  const isOfSession = (name: string) => owner === "event" && name.startsWith("$session");
  const inGroup = (group: string, chosen: readonly string[]) => chosen.map((value) => ({ value, group }));
  return [
    ...recentOptions("properties", names),
    ...inGroup(
      w.nameGroups[owner],
      names.filter((name) => !isOfSession(name)),
    ),
    ...inGroup(w.nameGroups.session, names.filter(isOfSession)),
  ];
}

interface NameFieldProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
  isLabelHidden?: boolean;
  placeholder?: string;
  help?: string;
  error?: string | undefined;
  isRequired?: boolean;
  class?: string;
}

/** The name of an event. */
export function EventField(props: NameFieldProps & { onCommit?: (name: string) => void }) {
  const { options, load } = useEventOptions();
  return (
    <Combobox
      {...props}
      options={options}
      onOpen={load}
      onChosen={(name) => recordChosenName("events", name)}
    />
  );
}

/** The name of a property of events, persons or groups. */
export function PropertyField({
  owner = "event",
  groupTypeIndex,
  ...props
}: NameFieldProps & { owner?: PropertyOwner; groupTypeIndex?: number | undefined }) {
  return (
    <Combobox
      {...props}
      options={usePropertyOptions(owner, groupTypeIndex)}
      onChosen={(name) => recordChosenName("properties", name)}
    />
  );
}
