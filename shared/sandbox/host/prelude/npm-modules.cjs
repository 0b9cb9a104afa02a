/**
 * npm modules that come with the sandbox: the host hands out their functions, one set per context.
 * They run exactly as the script does and get nothing that it has not.
 */
const { apply } = Reflect;
const ErrorClass = Error;

const cached = { __proto__: null };
/** Parts of Node that are npm modules here; one copy of each under both of its names. */
const PARTS_OF_NODE = {
  __proto__: null,
  'node:stream': 'stream',
  'node:stream/promises': 'stream/promises',
  'node:string_decoder': 'string_decoder',
};

const LODASH = 'lodash/';

/** `lodash/get` is a file of its own in the package; here it is the same function of the whole. */
function memberOfLodash(name, scriptRequire) {
  const { exports: lodash } = load('lodash', scriptRequire);
  const key = name.slice(LODASH.length);
  const member = Object.hasOwn(lodash, key) ? lodash[key] : undefined;
  return typeof member === 'function' ? { exports: member } : undefined;
}

/**
 * `{exports}` of the module; `undefined` when there is none of that name. `scriptRequire`: how it
 * requires others.
 */
function load(required, scriptRequire) {
  const name = PARTS_OF_NODE[required] ?? required;
  const known = cached[name];
  if (known !== undefined) return known;
  const factory = native('module', name);
  if (factory === undefined) {
    return name.startsWith(LODASH) ? memberOfLodash(name, scriptRequire) : undefined;
  }
  if (factory === null) throw new ErrorClass('The module cannot be loaded here.');
  // Kept while it loads: modules of a circle get what is there so far, as in Node.
  const module = { exports: {} };
  cached[name] = module;
  try {
    apply(factory, module.exports, [module.exports, scriptRequire, module]);
  } catch (error) {
    cached[name] = undefined;
    throw error;
  }
  return module;
}

exports.load = load;
