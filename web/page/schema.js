// JSON schemas as people read them.

import { h } from './dom.js';

/** Members of members are shown down to this depth; schemas may contain themselves. */
const DEEPEST = 5;

/** Follows references into `components`. */
function resolve(schema, all) {
  const name = schema?.$ref?.split('/').at(-1);
  if (!name) return schema ?? {};
  const { $ref, ...own } = schema;
  return { ...all[name], ...own };
}

/** What a schema asks for, in a word or two. */
export function typeOf(schema, all) {
  const one = resolve(schema, all);
  if (one === true || Object.keys(one).length === 0) return 'any';
  const choices = one.anyOf ?? one.oneOf;
  if (choices) return [...new Set(choices.map((choice) => typeOf(choice, all)))].join(' or ');
  if (one.const !== undefined) return JSON.stringify(one.const);
  if (one.enum) return one.enum.map((value) => JSON.stringify(value)).join(' or ');
  if (one.type === 'array') return one.items ? `list of ${typeOf(one.items, all)}` : 'list';
  if (Array.isArray(one.type)) return one.type.join(' or ');
  return one.type ?? 'object';
}

/** The object whose members are worth showing below a schema: itself, or the items of a list. */
function shape(schema, all) {
  const one = resolve(schema, all);
  if (one.properties) return one;
  if (one.items) return shape(one.items, all);
  const choices = (one.anyOf ?? one.oneOf ?? []).map((choice) => shape(choice, all)).filter(Boolean);
  return choices[0] ?? (typeof one.additionalProperties === 'object' ? shape(one.additionalProperties, all) : null);
}

/** A list of the members of a schema; `null` when it has none. */
export function members(schema, all, depth = 0) {
  const one = shape(schema, all);
  if (!one?.properties || depth > DEEPEST) return null;
  const required = new Set(one.required);
  return h('ul', { class: 'members' }, Object.entries(one.properties).map(([name, raw]) => {
    const member = resolve(raw, all);
    const facts = [typeOf(raw, all), required.has(name) && depth === 0 && 'required', member.default !== undefined && `default ${JSON.stringify(member.default)}`];
    return h('li', { class: 'member' }, h('code', {}, name), ' ', h('span', { class: 'type' }, facts.filter(Boolean).join(', ')),
      member.description && h('span', { class: 'about' }, member.description), members(raw, all, depth + 1));
  }));
}
