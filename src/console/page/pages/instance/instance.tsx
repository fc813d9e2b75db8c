/** Server page for operators: status, stores, doctor, backups, warnings. */

import type { ComponentChildren } from "preact";
import { FigureFrame } from "../../components/chart-frame.tsx";
import { Icon } from "../../components/icons.tsx";
import { Page } from "../../components/page.tsx";
import { Badge, CodeBlock } from "../../components/primitives.tsx";
import { Content, ErrorState } from "../../components/states.tsx";
import { ApiError, request, serverAddress } from "../../lib/api.ts";
import { ago, decimal, duration, number, size } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { isOperator, projects } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { captureProblem, getWaiting, type InstanceStatus } from "../../model/instance.ts";
import { Backups } from "./backups.tsx";
import { Doctor } from "./doctor.tsx";
import { Imports } from "./imports.tsx";

const w = lazyMessages.instance;
const readEveryMs = 5_000;
/** From this share on, the volume is shown as filling up. */
const fullShare = 0.9;

export function Instance() {
  const status = useResource<InstanceStatus>(
    isOperator.value ? "instance" : null,
    (signal) => request("/api/instance/status/", { signal }),
    readEveryMs,
  );
  return (
    <Page title={messages.frame.pages.instance}>
      {isOperator.value ? (
        <Content of={status}>{(found) => <Parts status={found} onChanged={status.reload} />}</Content>
      ) : (
        <ErrorState failure={new ApiError(403, "permission_denied", messages.frame.onlyOperators)} />
      )}
    </Page>
  );
}

const projectName = (id: number) => projects.value.find((project) => project.id === id)?.name ?? `#${id}`;

function Parts({ status, onChanged }: { status: InstanceStatus; onChanged: () => void }) {
  const { engine, disk, volume } = status;
  const total = Object.values(disk).reduce((sum, bytes) => sum + bytes, 0);
  const quarantine = disk.quarantine_bytes ?? 0;
  return (
    <>
      <section class="stack">
        <p class="row">
          <Badge tone={engine.up ? "good" : "bad"}>{status.state}</Badge>
          <span class="muted">
            {w.version(status.version)}
            {status.uptime_seconds !== null && ` · ${w.up(duration(status.uptime_seconds))}`}
          </span>
        </p>
        <dl class="tiles">
          <Tile name={w.facts.events} value={w.perSecond(decimal(status.events_per_second))} />
          <Tile name={w.facts.waiting} value={number(getWaiting(status))} />
          <Tile
            name={w.facts.engine}
            value={engine.up ? w.engineUp : w.engineDown}
            note={w.restarts(engine.restarts)}
          />
          <Tile
            name={w.facts.disk}
            value={size(total)}
            note={w.volume(size(volume.free_bytes), size(volume.total_bytes))}
          >
            <meter
              aria-label={w.volumeUsed}
              max={volume.total_bytes}
              value={volume.total_bytes - volume.free_bytes}
              high={volume.total_bytes * fullShare}
              optimum={0}
            />
          </Tile>
          <Tile
            name={w.facts.backup}
            value={
              status.last_backup?.created_at
                ? ago(status.last_backup.created_at)
                : messages.frame.health.noBackup
            }
            {...(status.last_backup?.error ? { note: status.last_backup.error } : {})}
          />
        </dl>
        {engine.rebuilding && (
          <p class="bar warn">{w.rebuilding(engine.rebuilding.done, engine.rebuilding.total)}</p>
        )}
        {captureProblem(status) && (
          <p class="bar bad" role="alert">
            <Icon name="warning" />
            <span>{captureProblem(status)}</span>
          </p>
        )}
        {engine.trouble && (
          <p class="bar bad" role="alert">
            <Icon name="warning" />
            <span>
              {engine.trouble.message} {engine.trouble.hint}
            </span>
          </p>
        )}
        {status.given_up.map(({ lane, first_seq: first, last_seq: last }) => (
          <p key={`${lane} ${first}`} class="bar bad" role="alert">
            <Icon name="warning" />
            <span>{w.discarded(first, last, lane)}</span>
          </p>
        ))}
        {quarantine > 0 && (
          <p class="bar bad" role="alert">
            <Icon name="warning" />
            <span>{w.quarantine(size(quarantine))}</span>
          </p>
        )}
      </section>
      <Backups onDone={onChanged} />
      <Imports onDone={onChanged} />
      <Doctor />
      <div class="columns">
        <section class="card">
          <h2>{w.stores}</h2>
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
            {status.journal.map((lane) => (
              <tr key={lane.lane}>
                <th scope="row">{lane.lane}</th>
                <td>{number(lane.last_seq)}</td>
                <td>{number(lane.applied_seq)}</td>
                <td>{number(lane.lag_entries)}</td>
              </tr>
            ))}
          </FigureFrame>
        </section>
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
            {status.spikes.map(
              ({ id, project_id: in_, peak_per_minute: peak, usual_per_minute: baseline }) => (
                <li key={id}>{w.spike(decimal(peak), decimal(baseline), projectName(in_))}</li>
              ),
            )}
          </ul>
        </section>
      </div>
      <section class="card stack">
        <h2>{w.metrics}</h2>
        <p class="help">{w.metricsHelp}</p>
        <CodeBlock label={w.metrics} code={alertRule()} />
      </section>
    </>
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
