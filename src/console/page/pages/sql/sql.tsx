/** SQL over the project's views: several queries in tabs, kept in this browser. */

import { useRef, useState } from "preact/hooks";
import { Page } from "../../components/page.tsx";
import { Button, Tabs } from "../../components/primitives.tsx";
import { useAddress } from "../../lib/router.ts";
import { project } from "../../lib/session.ts";
import { readPreference, savePreference } from "../../lib/storage.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { SqlQuery } from "./query.tsx";

const w = lazyMessages.sql;
const tabsMax = 10;

interface QueryTab {
  id: number;
  text: string;
}

const preference = () => `sql tabs ${project.value?.id}`;

/** Tabs of the last visit; the address adds one unless it names a statement that is open. */
function firstTabs(asked: string | undefined): { tabs: QueryTab[]; current: number } {
  let texts: string[] = [];
  try {
    const stored = JSON.parse(readPreference(preference()) ?? "[]") as unknown;
    if (Array.isArray(stored)) texts = stored.filter((text) => typeof text === "string");
  } catch {
    // Unreadable: ignored.
  }
  texts = texts.filter((text) => text.trim() !== "").slice(-tabsMax);
  if (asked !== undefined && !texts.includes(asked)) texts = [...texts, asked].slice(-tabsMax);
  if (texts.length === 0) texts = [""];
  return {
    tabs: texts.map((text, id) => ({ id, text })),
    current: asked === undefined ? texts.length - 1 : texts.indexOf(asked),
  };
}

export function Sql() {
  const { query, set } = useAddress();
  const [{ tabs, current }, setState] = useState(() => firstTabs(query.q));
  const nextId = useRef(tabs.length);
  /** Tabs that were opened stay, with their results. */
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set([current]));
  const put = (changed: QueryTab[], chosen: number) => {
    setState({ tabs: changed, current: chosen });
    setOpened(new Set([...opened, chosen]));
    savePreference(preference(), JSON.stringify(changed.map(({ text }) => text)));
  };
  const choose = (id: number) => {
    put(tabs, id);
    set({ q: tabs.find((tab) => tab.id === id)?.text || undefined });
  };
  const add = () => {
    put([...tabs, { id: nextId.current, text: "" }], nextId.current);
    nextId.current += 1;
    set({ q: undefined });
  };
  const close = () => {
    const left = tabs.filter(({ id }) => id !== current);
    const chosen = left.at(-1)!;
    put(left, chosen.id);
    set({ q: chosen.text || undefined });
  };
  return (
    <Page title={messages.frame.pages.sql} isWide>
      <div class="row">
        <Tabs
          label={w.queries}
          tabs={tabs.map(({ id }, position) => [String(id), w.query(position + 1)] as const)}
          current={String(current)}
          onChoose={(id) => choose(Number(id))}
        />
        <Button
          kind="quiet"
          icon="plus"
          label={w.newQuery}
          disabledReason={tabs.length >= tabsMax && w.tabsMax(tabsMax)}
          onClick={add}
        />
        {tabs.length > 1 && (
          <Button
            kind="quiet"
            icon="close"
            label={w.closeQuery(tabs.findIndex(({ id }) => id === current) + 1)}
            onClick={close}
          />
        )}
      </div>
      {tabs
        .filter(({ id }) => opened.has(id))
        .map(({ id, text }) => (
          <div key={id} hidden={id !== current}>
            <SqlQuery
              first={text}
              onText={(next) =>
                put(
                  tabs.map((tab) => (tab.id === id ? { id, text: next } : tab)),
                  current,
                )
              }
            />
          </div>
        ))}
    </Page>
  );
}
