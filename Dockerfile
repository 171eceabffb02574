# A server with docnmt in it, for CPUs. From the clone:
#
#     docker build -t docnmt .
#     docker run -p 5000:5000 -v "$PWD/runs/demo/document/model:/model:ro" docnmt
#
# Other verbs the same way: docker run -v "$PWD:/data" -w /data docnmt translate MODEL FILE -o OUT
FROM python:3.12-slim

# The compiler is for docnmt's C extension, which translation is much faster with.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*

WORKDIR /source
COPY . .

# The CPU build first: the plain one comes with gigabytes of GPU libraries.
RUN python -m pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu "$(grep ^torch== constraints.txt)"
RUN python -m pip install --no-cache-dir --constraint constraints.txt '.[serve]'

RUN useradd --create-home docnmt
USER docnmt
WORKDIR /home/docnmt

EXPOSE 5000
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:5000/health')"]
ENTRYPOINT ["docnmt"]
CMD ["serve", "/model", "--host", "0.0.0.0"]
