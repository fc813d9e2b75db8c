/** Second step of a web experiment: its variants, and what each of them changes on pages. */

import { useState } from "preact/hooks";
import { Area, Field, Select } from "../../components/fields.tsx";
import { Form } from "../../components/form.tsx";
import { AddButton, Button, CodeBlock } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { request } from "../../lib/api.ts";
import { useUnsavedFields } from "../../lib/form.ts";
import { useResource } from "../../lib/resource.ts";
import { to } from "../../lib/router.ts";
import { project } from "../../lib/session.ts";
import { lazyMessages } from "../../messages/later.ts";
import { type Experiment, experimentPath, type StepProps } from "../../model/experiments.ts";
import {
  type ContentKind,
  changeWebExperiment,
  type EditedTransform,
  freshTransform,
  getContent,
  getContentKind,
  readWebVariants,
  utmNames,
  type WebConditions,
  type WebExperiment,
  type WebVariant,
  webExperimentPath,
  withContent,
} from "../../model/web-experiments.ts";
import { getVariantProblem, ShareRows } from "./variant-shares.tsx";

const w = lazyMessages.webExperiments;
const e = lazyMessages.experiments;
const transformsMax = 100;

export function WebVariants(props: StepProps) {
  const { id } = props.experiment;
  const found = useResource<WebExperiment>(`web experiment ${project.value?.id} ${id}`, (signal) =>
    request(webExperimentPath(id), { signal }),
  );
  return (
    <Content resource={found}>
      {(data) => (
        <VariantsForm
          // The form starts again with data that was read meanwhile.
          key={JSON.stringify(data.variants)}
          {...props}
          start={readWebVariants(data)}
          onChanged={found.replace}
        />
      )}
    </Content>
  );
}

function VariantsForm({
  experiment,
  rejection,
  onDone,
  start,
  onChanged,
}: StepProps & { start: readonly WebVariant[]; onChanged: (after: WebExperiment) => void }) {
  const { id, status, feature_flag: flag } = experiment;
  const unsaved = useUnsavedFields("web variants");
  const [variants, setVariants] = unsaved.field<readonly WebVariant[]>("variants", start);
  const isFixed = status !== "draft";
  const put = (position: number, changed: Partial<WebVariant>) =>
    setVariants(
      variants.map((variant, index) => (index === position ? { ...variant, ...changed } : variant)),
    );
  const send = async () => {
    if (getVariantProblem(variants) !== undefined && !isFixed) return false;
    onChanged(await changeWebExperiment(id, variants));
    onDone(await request<Experiment>(experimentPath(id)));
    return true;
  };
  return (
    <section class="stack">
      <Form
        unsaved={unsaved}
        onSend={send}
        action={e.saveNext}
        done={e.draftSaved}
        disabledReason={rejection}
      >
        <section class="card stack">
          <h2>{e.steps.variants}</h2>
          <p>
            {e.flag}: <a href={to(`flags/${flag.id}`)}>{flag.key}</a>
          </p>
          <p class="help">
            {w.controlHelp} {isFixed && e.variantsFixed}
          </p>
          {status === "running" && <p class="bar warn">{w.running}</p>}
          <ShareRows
            variants={variants}
            isFixed={isFixed}
            isRowFixed={({ isControl }) => isControl}
            fresh={(key) => ({
              key,
              isControl: false,
              rollout_percentage: 0,
              transforms: [freshTransform()],
              conditions: {},
            })}
            onChange={setVariants}
          />
        </section>
        {variants.map(
          (variant, position) =>
            !variant.isControl && (
              <VariantChanges
                key={position}
                experimentId={status === "running" ? id : undefined}
                variant={variant}
                onChange={(changed) => put(position, changed)}
              />
            ),
        )}
      </Form>
    </section>
  );
}

function VariantChanges({
  experimentId,
  variant: { key, transforms, conditions },
  onChange,
}: {
  /** Of a running experiment: only those are previewed on pages. */
  experimentId: number | undefined;
  variant: WebVariant;
  onChange: (changed: Partial<WebVariant>) => void;
}) {
  return (
    <section class="card stack" aria-label={key}>
      <h2>{key}</h2>
      {transforms.map((transform, position) => (
        <TransformFields
          key={position}
          transform={transform}
          position={position}
          isOnly={transforms.length === 1}
          onChange={(changed) => onChange({ transforms: transforms.with(position, changed) })}
          onRemove={() => onChange({ transforms: transforms.toSpliced(position, 1) })}
        />
      ))}
      <div class="row">
        <AddButton
          isDisabled={transforms.length >= transformsMax}
          onAdd={() => onChange({ transforms: [...transforms, freshTransform()] })}
        >
          {w.addChange}
        </AddButton>
      </div>
      <ConditionFields
        conditions={conditions}
        onChange={(changed) => onChange({ conditions: { ...conditions, ...changed } })}
      />
      {experimentId !== undefined && (
        <>
          <p class="help">{w.previewHelp}</p>
          <CodeBlock
            label={w.preview}
            code={`?__experiment_id=${experimentId}&__experiment_variant=${encodeURIComponent(key)}`}
          />
        </>
      )}
    </section>
  );
}

function TransformFields({
  transform,
  position,
  isOnly,
  onChange,
  onRemove,
}: {
  transform: EditedTransform;
  position: number;
  isOnly: boolean;
  onChange: (transform: EditedTransform) => void;
  onRemove: () => void;
}) {
  const kind = getContentKind(transform);
  const content = getContent(transform);
  return (
    <fieldset class="source stack">
      <legend class="unseen">{w.change(position + 1)}</legend>
      <div class="row apart">
        <h3>{w.change(position + 1)}</h3>
        <Button
          kind="quiet"
          icon="trash"
          label={w.removeChange(position + 1)}
          isDisabled={isOnly}
          onClick={onRemove}
        />
      </div>
      <Field
        label={w.selector}
        value={transform.selector}
        placeholder="#buy, .hero h1"
        isRequired
        onInput={(selector) => onChange({ ...transform, selector })}
      />
      <Select
        label={w.content}
        value={kind}
        choices={Object.entries(w.contents) as [ContentKind, string][]}
        onChange={(chosen) => onChange(withContent(transform, chosen, content))}
      />
      {kind === "text" && (
        <Field
          label={w.text}
          value={content}
          isRequired
          onInput={(value) => onChange(withContent(transform, kind, value))}
        />
      )}
      {kind === "html" && (
        <>
          <Area
            label={w.html}
            value={content}
            onInput={(value) => onChange(withContent(transform, kind, value))}
          />
          <p class="help">{w.htmlHelp}</p>
        </>
      )}
      <Field
        label={w.css}
        value={transform.css ?? ""}
        help={w.cssHelp}
        isRequired={kind === "none"}
        onInput={(css) => onChange({ ...transform, css })}
      />
    </fieldset>
  );
}

function ConditionFields({
  conditions: { url = "", urlMatchType = "icontains", utm = {} },
  onChange,
}: {
  conditions: WebConditions;
  onChange: (changed: Partial<WebConditions>) => void;
}) {
  const [hasUtm, setUtmOpen] = useState(Object.keys(utm).length > 0);
  return (
    <>
      <h3>{w.where}</h3>
      <Field label={w.url} value={url} help={w.urlHelp} onInput={(text) => onChange({ url: text })} />
      <Select
        label={w.urlMatch}
        value={urlMatchType}
        choices={Object.entries(lazyMessages.surveys.urlMatches)}
        onChange={(chosen) => onChange({ urlMatchType: chosen })}
      />
      <details open={hasUtm} onToggle={(event) => setUtmOpen(event.currentTarget.open)}>
        <summary>{w.utm}</summary>
        <div class="stack">
          {utmNames.map((name) => (
            <Field
              key={name}
              label={w.utmNames[name]}
              value={utm[name] ?? ""}
              onInput={(text) => onChange({ utm: { ...utm, [name]: text } })}
            />
          ))}
        </div>
      </details>
    </>
  );
}
