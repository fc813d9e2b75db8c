/** What a share link shows: a dashboard or an insight, without a session. */

import { useEffect, useState } from "preact/hooks";
import { Field } from "../components/fields.tsx";
import { InsightView } from "../components/insight-view.tsx";
import { Button } from "../components/primitives.tsx";
import { Rows } from "../components/states.tsx";
import type { SharedItem } from "../lib/api-types.ts";
import { parseJson } from "../lib/json.ts";
import { serverPath } from "../lib/server.ts";
import { messages } from "../messages/index.ts";
import { flagChangesText } from "../model/dashboard.ts";
import { kindOfQuery, viewOfQuery } from "../model/insight.ts";
import { SharedOverview } from "./overview/shared-overview.tsx";

const w = messages.share;

interface SharedInsight {
  name: string;
  description: string;
  kind: string;
  display: string | null;
  result: unknown;
  problem: string | null;
}
type State = { item: SharedItem } | { problem: string; code: string };

async function read(token: string, password: string): Promise<State> {
  const headers: Record<string, string> = { Authorization: `Bearer ${token}` };
  if (password !== "") headers["X-Flagkeep-Share-Password"] = encodeURIComponent(password);
  try {
    // Not as the signed-in user: everyone sees the same.
    const response = await fetch(`${serverPath}/api/shared/`, { headers, credentials: "omit" });
    const body = parseJson(await response.text()) as SharedItem & { detail: string; code: string };
    return response.ok ? { item: body } : { problem: body.detail, code: body.code };
  } catch {
    return { problem: messages.frame.loadFailed, code: "unreachable" };
  }
}

export function Shared() {
  // In the URL fragment, so that no proxy logs it.
  const [token] = useState(() => decodeURIComponent(location.hash.slice(1)));
  const [password, setPassword] = useState("");
  const [state, setState] = useState<State>();
  const open = () => void read(token, password).then(setState);
  useEffect(() => {
    document.title = messages.frame.titleOf(w.page);
    if (token === "") setState({ problem: w.incomplete, code: "incomplete" });
    else open();
  }, []);
  useEffect(() => {
    if (state !== undefined && "item" in state) document.title = messages.frame.titleOf(state.item.name);
  }, [state]);
  if (state === undefined)
    return (
      <main class="alone">
        <Rows />
      </main>
    );
  if ("item" in state) return <Item item={state.item} />;
  const needsPassword = state.code === "password_required" || password !== "";
  return (
    <main class="alone">
      <form
        class="card stack"
        onSubmit={(event) => {
          event.preventDefault();
          open();
        }}
      >
        <h1>{needsPassword ? w.passwordTitle : w.page}</h1>
        {state.code !== "password_required" && (
          <p class="error" role="alert">
            {state.problem}
          </p>
        )}
        {needsPassword && (
          <>
            <Field
              label={messages.signing.password}
              type="password"
              autocomplete="off"
              value={password}
              onInput={setPassword}
              autofocus
            />
            <Button kind="main" type="submit">
              {w.open}
            </Button>
          </>
        )}
      </form>
    </main>
  );
}

function Item({ item }: { item: SharedItem }) {
  return (
    <main class="shared stack">
      <header>
        <h1>{item.kind === "overview" ? messages.frame.pages.overview : item.name || w.page}</h1>
        <p class="muted">{w.of(item.project)}</p>
        {item.description && <p>{item.description}</p>}
      </header>
      {item.kind === "overview" ? (
        <SharedOverview parts={item.tiles.flatMap(({ insight }) => insight ?? [])} />
      ) : (
        <div class="board">
          {item.tiles
            // Changes of flags name users: they are not part of what is shared.
            .filter(({ text }) => text !== flagChangesText)
            .map(({ id, text, insight }) => (
              <section key={id} class="card tile-card" aria-label={insight?.name ?? text ?? ""}>
                {insight === null ? <p class="tile-text">{text}</p> : <SharedTile insight={insight} />}
              </section>
            ))}
        </div>
      )}
    </main>
  );
}

function SharedTile({ insight }: { insight: SharedInsight }) {
  const query = { kind: insight.kind, trendsFilter: { display: insight.display } };
  const kind = kindOfQuery(query);
  return (
    <>
      <h2>{insight.name}</h2>
      {insight.result && kind !== undefined && kind !== "sql" ? (
        <div class="tile-body">
          <InsightView kind={kind} view={viewOfQuery(query)} results={insight.result} label={insight.name} />
        </div>
      ) : (
        <p class="muted">{insight.problem ?? w.noResult}</p>
      )}
    </>
  );
}
