-- Stands before the scripts that keep account of who has the jobs of a group.
-- The coverage of a group is a hash with a field for each job that it ever had: spans in which no leader could decide its ticks, as
-- `kind|from|until` in ms, oldest first, with a space between; one that goes on has no end. The kinds: 'u' the leader lacked the job and another
-- instance had it, 'r' nobody had it, 'f' another implementation led. Or '>' and the name under which the job goes on.
local SPANS_KEPT = 16

-- One that cannot be read is empty, and stops nobody.
local function read_coverage(key)
  local fields, known = redis.pcall('HGETALL', key), {}
  for i = 1, #fields, 2 do
    if is_name(fields[i]) then
      known[fields[i]] = fields[i + 1]
    end
  end
  return known
end

local function spans_of(text)
  local spans = {}
  for kind, from, till in string.gmatch(text or '', '([ufr])|(%d+)|(%d*)') do
    spans[#spans + 1] = { kind = kind, from = tonumber(from), till = tonumber(till) }
  end
  return spans
end

local function text_of(spans)
  local words = {}
  for i = math.max(#spans - SPANS_KEPT, 0) + 1, #spans do
    local span = spans[i]
    words[#words + 1] = string.format('%s|%.0f|', span.kind, span.from) .. (span.till and string.format('%.0f', span.till) or '')
  end
  return table.concat(words, ' ')
end

-- Where the state of a job is kept. What is no name is passed over, and a circle of names.
local function goes_on_as(known, first)
  local name = first
  for _ = 0, SPANS_KEPT do
    local next = string.match(known[name] or '', '^>(.+)$')
    if not next or not is_name(next) then
      return name
    end
    name = next
  end
  return first
end

local function end_open(spans, at)
  local last = spans[#spans]
  if last and not last.till then
    if at > last.from then
      last.till = at
    else
      spans[#spans] = nil
    end
  end
end

-- The leader lacks the job: since now, unless it is so already.
local function lack(spans, kind, now)
  local last = spans[#spans]
  if last and not last.till and last.kind == kind then
    return
  end
  end_open(spans, now)
  spans[#spans + 1] = { kind = kind, from = now }
end

-- The names that other living instances have jobs by, each as its state is kept; nil where that is not known.
local function names_elsewhere(known, text)
  if text == '*' then
    return nil
  end
  local names = {}
  for name in string.gmatch(text, '%S+') do
    names[goes_on_as(known, name)] = true
  end
  return names
end

-- Marks what the leader lacks. Gives what has changed, as fields and values.
local function mark_lacked(known, own, elsewhere, now)
  local changes = {}
  for name, text in pairs(known) do
    if not own[name] and string.sub(text, 1, 1) ~= '>' then
      local spans = spans_of(text)
      lack(spans, (not elsewhere or elsewhere[name]) and 'u' or 'r', now)
      local marked = text_of(spans)
      if marked ~= text then
        changes[#changes + 1] = name
        changes[#changes + 1] = marked
        known[name] = marked
      end
    end
  end
  return changes
end

-- In parts, because a call takes only so many words.
local function write_coverage(key, changes)
  for i = 1, #changes, 1000 do
    redis.pcall('HSET', key, unpack(changes, i, math.min(i + 999, #changes)))
  end
end

