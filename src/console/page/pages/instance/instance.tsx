/** Server page for operators: health, backups, imports, storage, checks. */

import type { ComponentChildren } from "preact";
import { FigureFrame } from "../../components/chart-frame.tsx";
import { Icon } from "../../components/icons.tsx";
import { Page } from "../../components/page.tsx";
import { Badge, CodeBlock, Tabs } from "../../components/primitives.tsx";
import { Sparkline } from "../../components/sparkline.tsx";
import { Content, ErrorState } from "../../components/states.tsx";
import { ApiError, request, serverAddress } from "../../lib/api.ts";
import type { InstanceHistory } from "../../lib/api-types.ts";
import { ago, decimal, duration, number, size } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { useAddress } from "../../lib/router.ts";
import { isOperator, projects } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import {
  captureProblem,
  type Fold,
  foldSamples,
  getWaiting,
  type InstanceStatus,
} from "../../model/instance.ts";
import { Backups } from "./backups.tsx";
import { Doctor } from "./doctor.tsx";
import { Imports } from "./imports.tsx";

const w = lazyMessages.instance;
const readEveryMs = 5_000;
const historyMs = 60_000;
/** From this share on, the volume is shown as filling up. */
const fullShare = 0.9;

type Tab = keyof typeof w.tabs;

export function Instance() {
  const { query, set } = useAddress();
  const tab = (query.tab !== undefined && query.tab in w.tabs ? query.tab : "health") as Tab;
  const status = useResource<InstanceStatus>(
    isOperator.value ? "instance" : null,
    (signal) => request("/api/instance/status/", { signal }),
    readEveryMs,
  );
  if (!isOperator.value)
    return (
      <Page title={messages.frame.pages.instance}>
        <ErrorState failure={new ApiError(403, "permission_denied", messages.frame.onlyOperators)} />
      </Page>
    );
  return (
    <Page title={messages.frame.pages.instance}>
      <Tabs
        label={w.tabsLabel}
        tabs={Object.entries(w.tabs) as [Tab, string][]}
        current={tab}
        onChoose={(next) => set({ tab: next === "health" ? undefined : next }, true)}
      />
      {tab === "health" && <Content resource={status}>{(found) => <HealthTab status={found} />}</Content>}
      {tab === "backups" && <Backups onDone={status.reload} />}
      {tab === "imports" && <Imports onDone={status.reload} />}
      {tab === "storage" && <Content resource={status}>{(found) => <StorageTab status={found} />}</Content>}
      {tab === "checks" && (
        <>
          <Doctor />
          <section class="card stack">
            <h2>{w.metrics}</h2>
            <p class="help">{w.metricsHelp}</p>
            <CodeBlock label={w.metrics} code={alertRule()} />
          </section>
        </>
      )}
    </Page>
  );
}

const projectName = (id: number) => projects.value.find((project) => project.id === id)?.name ?? `#${id}`;

/** What needs attention, most severe first. */
function getProblems(status: InstanceStatus): [tone: "bad" | "warn", text: string][] {
  const { engine, disk } = status;
  const capture = captureProblem(status);
  const quarantine = disk.quarantine_bytes ?? 0;
  return [
    ...(capture ? [["bad", capture] as const] : []),
    ...(engine.trouble ? [["bad", `${engine.trouble.message} ${engine.trouble.hint}`] as const] : []),
    ...status.given_up.map(
      ({ lane, first_seq: first, last_seq: last }) => ["bad", w.discarded(first, last, lane)] as const,
    ),
    ...(quarantine > 0 ? [["bad", w.quarantine(size(quarantine))] as const] : []),
    ...(status.last_backup?.error ? [["bad", w.backupFailed(status.last_backup.error)] as const] : []),
    ...(engine.rebuilding
      ? [["warn", w.rebuilding(engine.rebuilding.done, engine.rebuilding.total)] as const]
      : []),
  ].map(([tone, text]) => [tone, text]);
}

/** One sentence, what needs attention, and five figures with their last 24 hours. */
function HealthTab({ status }: { status: InstanceStatus }) {
  const { engine, disk, volume } = status;
  const history = useResource<InstanceHistory>(
    "instance history",
    (signal) => request("/api/instance/history/", { signal }),
    historyMs,
  );
  const samples = history.data?.results ?? [];
  const total = Object.values(disk).reduce((sum, bytes) => sum + bytes, 0);
  const problems = getProblems(status);
  const isWell = status.state === "ready" && engine.up && problems.every(([tone]) => tone !== "bad");
  const course = (name: string, values: readonly number[], fold?: Fold) =>
    values.length > 0 ? (
      <Sparkline values={foldSamples(values, fold)} label={w.last24h(name)} />
    ) : (
      (history.data ?? history.failure) && <span class="sub">{w.noHistory}</span>
    );
  const lastBackup = status.last_backup?.created_at;
  return (
    <>
      <p class="row">
        <Badge tone={isWell ? "good" : "bad"}>{status.state}</Badge>
        <span>
          {w.sentence(
            isWell,
            decimal(status.events_per_second),
            status.warnings.reduce((sum, { count }) => sum + count, 0),
          )}
        </span>
        <span class="muted">
          {w.version(status.version)}
          {status.uptime_seconds !== null && ` · ${w.up(duration(status.uptime_seconds))}`}
        </span>
      </p>
      {problems.map(([tone, text]) => (
        <p key={text} class={`bar ${tone}`} role="alert">
          <Icon name="warning" />
          <span>{text}</span>
        </p>
      ))}
      <section class="card">
        <h2>{w.warnings}</h2>
        {status.warnings.length === 0 && <p class="muted">{w.noWarnings}</p>}
        <ul class="changes">
          {status.warnings.map(({ project_id: id, type, count }) => (
            <li key={`${id} ${type}`}>{w.warning(type, count, projectName(id))}</li>
          ))}
        </ul>
        {status.spikes.length > 0 && <h3>{w.spikes}</h3>}
        <ul class="changes">
          {status.spikes.map(({ id, project_id: in_, peak_per_minute: peak, usual_per_minute: baseline }) => (
            <li key={id}>{w.spike(decimal(peak), decimal(baseline), projectName(in_))}</li>
          ))}
        </ul>
      </section>
      <dl class="tiles">
        <Tile name={w.facts.events} value={w.perSecond(decimal(status.events_per_second))}>
          {course(
            w.facts.events,
            samples.map(({ events_per_second: rate }) => rate),
          )}
        </Tile>
        <Tile name={w.facts.waiting} value={number(getWaiting(status))}>
          {course(
            w.facts.waiting,
            samples.map(({ lag_entries: lag }) => lag),
          )}
        </Tile>
        <Tile
          name={w.facts.engine}
          value={engine.up ? w.engineUp : w.engineDown}
          note={w.restarts(engine.restarts)}
        >
          {course(
            w.facts.engine,
            samples.map(({ engine_up: isUp }) => (isUp ? 1 : 0)),
            // An hour with an outage is down.
            Math.min,
          )}
        </Tile>
        <Tile
          name={w.facts.disk}
          value={size(total)}
          note={w.volume(size(volume.free_bytes), size(volume.total_bytes))}
        >
          {course(
            w.facts.disk,
            samples.map(({ disk_bytes: bytes }) => bytes),
          )}
        </Tile>
        <Tile name={w.facts.backup} value={lastBackup ? ago(lastBackup) : messages.frame.health.noBackup}>
          {course(
            w.facts.backup,
            samples.map(({ at, last_backup_at: last }) => (last ? Date.parse(at) - Date.parse(last) : 0)),
          )}
        </Tile>
      </dl>
    </>
  );
}

function StorageTab({ status: { disk, volume, journal } }: { status: InstanceStatus }) {
  return (
    <div class="columns">
      <section class="card">
        <h2>{w.stores}</h2>
        <meter
          aria-label={w.volumeUsed}
          max={volume.total_bytes}
          value={volume.total_bytes - volume.free_bytes}
          high={volume.total_bytes * fullShare}
          optimum={0}
        />
        <p class="help">{w.volume(size(volume.free_bytes), size(volume.total_bytes))}</p>
        <table class="figures wide">
          <tbody>
            {Object.entries(disk).map(([name, bytes]) => (
              <tr key={name}>
                <th scope="row">{w.storeNames[name] ?? name}</th>
                <td>{size(bytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <section class="card">
        <h2>{w.journal}</h2>
        <FigureFrame
          label={w.journal}
          shape="wide"
          heads={[w.lane, w.laneColumns.accepted, w.laneColumns.loaded, w.laneColumns.waiting]}
        >
          {journal.map((lane) => (
            <tr key={lane.lane}>
              <th scope="row">{lane.lane}</th>
              <td>{number(lane.last_seq)}</td>
              <td>{number(lane.applied_seq)}</td>
              <td>{number(lane.lag_entries)}</td>
            </tr>
          ))}
        </FigureFrame>
      </section>
    </div>
  );
}

interface TileProps {
  name: string;
  value: string;
  note?: string;
  children?: ComponentChildren;
}

function Tile({ name, value, note, children }: TileProps) {
  return (
    <div class="tile">
      <dt>{name}</dt>
      <dd>
        {value}
        {children}
        {note && <span class="sub">{note}</span>}
      </dd>
    </div>
  );
}

function alertRule(): string {
  return `# scrape ${serverAddress()}/metrics
groups:
  - name: flagkeep
    rules:
      - alert: FlagkeepDown
        expr: up{job="flagkeep"} == 0
        for: 2m
`;
}
